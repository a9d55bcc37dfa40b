// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <string>
#include <system_error>

#include <lockstep/core/shortest.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

/// Returns a number in a format with `digits` digits, with a point in any locale. Numbers that need more than 60
/// characters are written as by shortest().
[[nodiscard]] inline std::string formatted(double value, std::chars_format format, int digits) {
  char text[64];
  auto const [end, error] = std::to_chars(text, text + sizeof text, value, format, digits);
  return error == std::errc() ? std::string(text, end) : shortest(value);
}

/// Returns a number with `digits` decimals.
[[nodiscard]] inline std::string rounded(double value, int digits) {
  return formatted(value, std::chars_format::fixed, digits);
}

/// Returns a number with at most `digits` significant digits.
[[nodiscard]] inline std::string significant(double value, int digits) {
  return formatted(value, std::chars_format::general, digits);
}

}}}  // namespace lockstep::scaling::detail
