// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <system_error>

#include <lockstep/core/shortest.hpp>
#include <lockstep/scaling/detail/rounded.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling::detail {

LOCKSTEP_INLINE std::string formatted(double value, std::chars_format format, int digits) {
  char text[64];
  auto const [end, error] = std::to_chars(text, text + sizeof text, value, format, digits);
  return error == std::errc() ? std::string(text, end) : shortest(value);
}

LOCKSTEP_INLINE std::string rounded(double value, int digits) {
  return formatted(value, std::chars_format::fixed, digits);
}

LOCKSTEP_INLINE std::string significant(double value, int digits) {
  return formatted(value, std::chars_format::general, digits);
}

}}}  // namespace lockstep::scaling::detail
