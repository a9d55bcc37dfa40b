// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/safetensors_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

LOCKSTEP_COLD_INLINE void check_safetensors_layout(std::string const& path, json::Value const& header,
                                                   std::uint64_t bytes) {
  struct Tensor {
    std::int64_t begin, end;
    std::string_view name;
  };
  std::vector<Tensor> tensors;
  auto const fail = [&](std::string const& why) {
    throw DataError(path + ": " + why + "; the file is damaged or was not written by a safetensors library");
  };
  auto const quoted = [](std::string_view name) { return "\"" + std::string(name) + "\""; };
  for (auto const& [name, value] : header.object()) {
    if (name == "__metadata__") continue;
    auto const& offsets = value.at("data_offsets").array();
    if (offsets.size() != 2) fail("the tensor " + quoted(name) + " has " + std::to_string(offsets.size()) + " offsets");
    tensors.push_back({offsets[0].integer(), offsets[1].integer(), name});
    if (tensors.back().begin < 0 || tensors.back().end < tensors.back().begin)
      fail("the tensor " + quoted(name) + " has damaged offsets");
  }
  std::sort(tensors.begin(), tensors.end(),
            [](auto const& a, auto const& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  std::int64_t used = 0;
  std::string_view before;
  for (auto const& [begin, end, name] : tensors) {
    if (begin < used) fail("the tensors " + quoted(before) + " and " + quoted(name) + " have common bytes");
    if (begin > used)
      fail("bytes " + std::to_string(used) + " to " + std::to_string(begin) + " before the tensor " + quoted(name) +
           " belong to no tensor");
    used = end;
    before = name;
  }
  if (static_cast<std::uint64_t>(used) != bytes)
    fail("its tensors have " + std::to_string(used) + " bytes, and " + std::to_string(bytes) + " follow the header");
}

}}  // namespace lockstep
