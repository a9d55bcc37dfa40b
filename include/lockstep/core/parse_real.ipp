// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/parse_real.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace detail {

LOCKSTEP_COLD_INLINE bool is_tiny(std::string_view number) noexcept {
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

}}}  // namespace lockstep::detail
