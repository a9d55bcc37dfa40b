// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Returns the bytes of the first UTF-8 character of a string by its lead byte; 1 for an invalid lead byte.
[[nodiscard]] std::size_t character_bytes(std::string_view text) noexcept;

/// Returns whether a UTF-8 character is white space for Python's str.split().
[[nodiscard]] bool is_space(std::string_view character) noexcept;

/// Returns the words between white space, like Python's str.split().
[[nodiscard]] std::vector<std::string_view> split_words(std::string_view text);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/metrics/detail/split_words.ipp>
#endif
