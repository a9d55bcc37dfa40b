// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Returns x, or zero if |x| is below 2^bits times the least normal number. Without a gradient, a moment shrinks step
/// by step. After some hundreds of steps, it or its product with the rate would be subnormal, and each operation on it
/// ten times slower.
template <int bits, class T>
[[nodiscard, gnu::always_inline]] constexpr T flush_to_zero(T x) noexcept {
  return std::abs(x) < std::numeric_limits<T>::min() * static_cast<T>(1 << bits) ? T{0} : x;
}
/// Returns flush_to_zero(x) for x >= 0, with one operation less.
template <int bits, class T>
[[nodiscard, gnu::always_inline]] constexpr T flush_positive_to_zero(T x) noexcept {
  return x < std::numeric_limits<T>::min() * static_cast<T>(1 << bits) ? T{0} : x;
}

}}}  // namespace lockstep::optim::detail
