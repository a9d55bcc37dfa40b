// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// Changes with any byte of a content. Eight bytes at a time: far less than parsing them takes.
inline std::uint64_t content_hash(std::string_view content) noexcept {
  std::uint64_t hash = content.size();
  for (std::size_t at = 0; at < content.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, content.data() + at, std::min(sizeof word, content.size() - at));
    hash = mix(hash ^ word);
  }
  return hash;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
