// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <string>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the shortest decimal string that reads back as an equal number: "-1", "0.1", "1e-05", "inf". Messages print
/// floating-point numbers so; std::to_string gives "-1.000000" and "0.000010". 16-bit floating-point numbers are
/// printed as float.
template <class Number>
[[nodiscard]] std::string shortest(Number number) {
  if constexpr (!std::is_arithmetic_v<Number>) {
    return shortest(static_cast<float>(number));
  } else {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, number).ptr};
  }
}

}}  // namespace lockstep
