// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <lockstep/core/mix.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// Goes on with a hash that began as the number of all bytes; parts but the last are of whole words of eight bytes.
inline std::uint64_t content_hash(std::string_view part, std::uint64_t hash) noexcept {
  for (std::size_t at = 0; at < part.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, part.data() + at, std::min(sizeof word, part.size() - at));
    hash = mix(hash ^ word);
  }
  return hash;
}

/// Changes with any byte of a content. Eight bytes at a time: far less than parsing them takes.
inline std::uint64_t content_hash(std::string_view content) noexcept { return content_hash(content, content.size()); }

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
