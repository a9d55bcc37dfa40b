// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// A word of a buffer with at least `readable` readable bytes from the word's begin, however short the word is.
class PaddedWord : public std::string_view {
 public:
  static constexpr std::size_t readable = 16;
  constexpr PaddedWord(char const* begin, std::size_t size) noexcept : std::string_view(begin, size) {}
};

}}}  // namespace lockstep::data::detail
