// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <string_view>
#include <system_error>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI {
namespace detail {

/// Whether a decimal number that std::from_chars calls out of range is too small, not too large.
[[nodiscard]] inline bool is_tiny(std::string_view number) noexcept {
  auto const end = number.find_first_of("eE");
  Index exponent = 0;  // of the first digit that is not 0
  bool begun = false, behind_point = false;
  for (char const c : number.substr(0, end)) {
    behind_point = behind_point || c == '.';
    if (c < '0' || c > '9') continue;
    begun = begun || c != '0';
    if (begun != behind_point) exponent += begun ? 1 : -1;
  }
  if (end == std::string_view::npos) return exponent < 0;
  auto digits = number.substr(end + 1);
  bool const negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  Index power = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), power).ec != std::errc{}) return negative;
  return exponent < (negative ? power : -power);
}

}  // namespace detail

/// std::from_chars, but a number that is too small for T is 0.
template <class T>
std::from_chars_result parse_real(char const* begin, char const* end, T& out) noexcept {
  auto result = std::from_chars(begin, end, out);
  if (result.ec == std::errc::result_out_of_range &&
      detail::is_tiny({begin, static_cast<std::size_t>(result.ptr - begin)})) {
    out = *begin == '-' ? -T{0} : T{0};
    result.ec = {};
  }
  return result;
}

}  // namespace lockstep::inline LOCKSTEP_ABI
