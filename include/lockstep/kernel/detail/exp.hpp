// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>

#include <lockstep/core/version.hpp>
#include <lockstep/kernel/detail/masked.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// e^x as power (1 + rest): power is 2^n, and |rest| is at most sqrt(2) - 1. Below x = -87.33, where the result would
/// be denormal, both are arbitrary. `kept` is a mask of the result's bits: 0 there, and all ones elsewhere.
struct Exponential {
  float power, rest;
  std::uint32_t kept;
};

/// @source range reduction x = n ln 2 + r, |r| <= ln(2) / 2, with ln 2 in two parts (Cody and Waite); the polynomial is
/// the one of expf in the Cephes library (Moshier)
[[nodiscard, gnu::always_inline]] constexpr Exponential exponential(float x) noexcept {
  constexpr float shift = 0x1.8p23f;  // adding it leaves the nearest integer in the low bits
  float const shifted = x * 0x1.715476p0f + shift;
  float const n = shifted - shift;
  float const r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  auto const exponent = std::bit_cast<std::uint32_t>(shifted) << 23;  // n, shifted into the exponent
  return {std::bit_cast<float>(exponent + 0x3f800000u), p * (r * r) + r, x < -87.33f ? 0u : ~0u};
}

/// Returns e^x to within 2 units in the last place for x <= 88, and 0 below -87.33; NaN stays NaN. Free of branches and
/// calls, so a loop over it vectorizes, with equal bits for any vector length.
[[nodiscard, gnu::always_inline]] constexpr float exp(float x) noexcept {
  auto const [power, rest, kept] = exponential(x);
  return masked((rest + 1.0f) * power, kept);
}

template <std::same_as<double> Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar exp(Scalar x) noexcept {
  return std::exp(x);
}

}}}  // namespace lockstep::kernel::detail
