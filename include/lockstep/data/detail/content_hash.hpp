// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <lockstep/core/mix.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Continues a hash over the next part of a content. The hash starts as the number of all bytes. All parts except the
/// last have a multiple of eight bytes.
inline std::uint64_t content_hash(std::string_view part, std::uint64_t hash) noexcept {
  for (std::size_t at = 0; at < part.size(); at += sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, part.data() + at, std::min(sizeof word, part.size() - at));
    hash = mix(hash ^ word);
  }
  return hash;
}

/// Returns a hash that changes with any byte of a content. Processes eight bytes at a time, much faster than parsing.
inline std::uint64_t content_hash(std::string_view content) noexcept { return content_hash(content, content.size()); }

}}}  // namespace lockstep::data::detail
