// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include <lockstep/core/sha256.hpp>
#include <lockstep/train/files/parameters_sha256.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train {

LOCKSTEP_COLD_INLINE std::string parameters_sha256(nn::ParameterLayout const& layout, std::span<float const> values) {
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
