// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/kernel/detail/log.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// Returns the distance of 32 random bits from the middle of the distribution, in steps: each half has 2^31.
[[nodiscard, gnu::always_inline]] constexpr std::int32_t steps_from_middle(std::uint32_t bits) noexcept {
  return static_cast<std::int32_t>(bits >> 31 ? bits - 0x80000000u : 0x7fffffffu - bits);
}

/// Returns the value whose square root `normal_quantile` needs: -log(p), where p is the distance from the end. p is
/// exact as an integer, so values close to the end lose no bits.
[[nodiscard, gnu::always_inline]] constexpr float squared_tail(std::uint32_t bits) noexcept {
  return -log((static_cast<float>(0x7fffffff - steps_from_middle(bits)) + 0.5f) * 0x1p-32f);
}

/// Returns a number of the standard normal distribution from 32 random bits. It is the quantile at (bits + 1/2) 2^-32,
/// with a relative error of at most 2^-20. `tail` is the root of squared_tail(bits). The largest value is 6.34, and the
/// values are symmetric about 0. Computes both branches and selects one, so that a loop over it vectorizes, with equal
/// bits for any vector length.
/// @source Wichura: The percentage points of the normal distribution (AS 241, 1988), PPND7; 32 bits do not reach its
/// outermost branch
[[nodiscard, gnu::always_inline]] constexpr float normal_quantile(std::uint32_t bits, float tail) noexcept {
  float const q = (static_cast<float>(steps_from_middle(bits)) + 0.5f) * 0x1p-32f, r = 0.180625f - q * q;
  float const near = q * (((59.109374720f * r + 159.29113202f) * r + 50.434271938f) * r + 3.3871327179f) /
                     (((67.187563600f * r + 78.757757664f) * r + 17.895169469f) * r + 1.0f);
  float const s = tail - 1.6f;
  float const far = (((0.17023821103f * s + 1.3067284816f) * s + 2.7568153900f) * s + 1.4234372777f) /
                    ((0.12021132975f * s + 0.73700164250f) * s + 1.0f);
  float const magnitude = q <= 0.425f ? near : far;
  return bits >> 31 ? magnitude : -magnitude;
}

}}}  // namespace lockstep::kernel::detail
