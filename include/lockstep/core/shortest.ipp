// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>

#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace detail {

template <class Number>
[[nodiscard]] std::string shortest_text_of(Number number) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

LOCKSTEP_INLINE std::string shortest_text(float number) { return shortest_text_of(number); }
LOCKSTEP_INLINE std::string shortest_text(double number) { return shortest_text_of(number); }
LOCKSTEP_INLINE std::string shortest_text(long double number) { return shortest_text_of(number); }
LOCKSTEP_INLINE std::string shortest_text(long long number) { return shortest_text_of(number); }
LOCKSTEP_INLINE std::string shortest_text(unsigned long long number) { return shortest_text_of(number); }

}}}  // namespace lockstep::detail
