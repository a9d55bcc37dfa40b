// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include <lockstep/kernel/detail/exp.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the hyperbolic tangent to within 3 units in the last place; NaN stays NaN. Free of branches and calls, like
/// exp.
/// @source tanh |x| = -d / (2 + d) with d = e^(-2|x|) - 1 = 2^n (e^r - 1) + (2^n - 1), where nothing cancels: near zero
/// n is 0
[[nodiscard, gnu::always_inline]] constexpr float tanh(float x) noexcept {
  constexpr std::uint32_t sign = 0x80000000u;
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto const [power, rest, kept] = exponential(-2 * std::bit_cast<float>(bits & ~sign));
  float const d = masked(power * rest, kept) + (masked(power, kept) - 1);
  float const magnitude = -d / (2 + d);
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(magnitude) & ~sign) | (bits & sign));
}

template <std::same_as<double> Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar tanh(Scalar x) noexcept {
  return std::tanh(x);
}

}}}  // namespace lockstep::kernel::detail
