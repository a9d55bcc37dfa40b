// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the natural logarithm of a positive, normal, finite x to within 2 units in the last place; NaN stays NaN.
/// Free of branches and calls, so a loop over it vectorizes, with equal bits for any vector length.
/// @source x = 2^n m with m in [sqrt(1/2), sqrt(2)); the polynomial is the one of logf in the Cephes library (Moshier)
[[nodiscard, gnu::always_inline]] constexpr float log(float x) noexcept {
  constexpr std::uint32_t root = 0x3f3504f3;  // sqrt(1/2)
  auto const bits = std::bit_cast<std::uint32_t>(x) - root;
  auto const n = static_cast<float>(static_cast<std::int32_t>(bits) >> 23);
  float const f = std::bit_cast<float>((bits & 0x007fffffU) + root) - 1.0f;
  float p = 7.0376836292e-2f;
  p = p * f - 1.1514610310e-1f;
  p = p * f + 1.1676998740e-1f;
  p = p * f - 1.2420140846e-1f;
  p = p * f + 1.4249322787e-1f;
  p = p * f - 1.6668057665e-1f;
  p = p * f + 2.0000714765e-1f;
  p = p * f - 2.4999993993e-1f;
  p = p * f + 3.3333331174e-1f;
  float const square = f * f;
  float const small = (p * f * square - n * 2.12194440e-4f) - 0.5f * square;
  return (f + small) + n * 0.693359375f + (x - x);  // NaN stays NaN
}

template <std::same_as<double> Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar log(Scalar x) noexcept {
  return std::log(x);
}

}}}  // namespace lockstep::kernel::detail
