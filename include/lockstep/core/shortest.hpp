// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {
namespace detail {

[[nodiscard]] std::string shortest_text(float number);
[[nodiscard]] std::string shortest_text(double number);
[[nodiscard]] std::string shortest_text(long double number);
[[nodiscard]] std::string shortest_text(long long number);
[[nodiscard]] std::string shortest_text(unsigned long long number);

}  // namespace detail

/// Returns the shortest decimal string that reads back as an equal number: "-1", "0.1", "1e-05", "inf". Messages print
/// floating-point numbers so; std::to_string gives "-1.000000" and "0.000010". 16-bit floating-point numbers are
/// printed as float.
template <class Number>
[[nodiscard]] std::string shortest(Number number) {
  if constexpr (std::is_floating_point_v<Number>)
    return detail::shortest_text(number);
  else if constexpr (!std::is_integral_v<Number>)
    return detail::shortest_text(static_cast<float>(number));
  else if constexpr (std::is_signed_v<Number>)
    return detail::shortest_text(static_cast<long long>(number));
  else
    return detail::shortest_text(static_cast<unsigned long long>(number));
}

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/shortest.ipp>
#endif
