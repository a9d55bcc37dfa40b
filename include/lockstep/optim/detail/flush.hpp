// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim::detail {

/// x, or zero where x is within 2^bits of the least normal number. A moment that gets no gradient shrinks step by step;
/// some hundreds of steps later it, or its product with the rate, would be subnormal, and each operation on it an order
/// of magnitude slower, for good.
template <int bits, class T>
[[nodiscard, gnu::always_inline]] constexpr T flush(T x) noexcept {
  return std::abs(x) < std::numeric_limits<T>::min() * static_cast<T>(1 << bits) ? T{0} : x;
}
/// The same for x that is not below zero, with an operation less.
template <int bits, class T>
[[nodiscard, gnu::always_inline]] constexpr T flush_positive(T x) noexcept {
  return x < std::numeric_limits<T>::min() * static_cast<T>(1 << bits) ? T{0} : x;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::optim::detail
