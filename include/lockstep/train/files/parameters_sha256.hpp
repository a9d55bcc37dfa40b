// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/sha256.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

/// Returns the SHA-256 of all parameters' bytes in the order of their names, without padding. Two runs with equal
/// digests have bit-identical parameters.
/// @shape values [layout.size()]
[[nodiscard]] inline std::string parameters_sha256(nn::ParameterLayout const& layout, std::span<float const> values) {
  std::vector<nn::ParameterLayout::Entry const*> entries;
  for (auto const& entry : layout.entries()) entries.push_back(&entry);
  std::sort(entries.begin(), entries.end(), [](auto const* a, auto const* b) { return a->name < b->name; });
  Sha256 hash;
  for (auto const* entry : entries)
    hash.update(
        std::as_bytes(values.subspan(static_cast<std::size_t>(entry->offset), static_cast<std::size_t>(entry->size))));
  return hex(hash.digest());
}

}}}  // namespace lockstep::train
