// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <limits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Returns x, or zero if |x| is below 2^bits times the least normal number. Without a gradient, a moment shrinks step
/// by step. After some hundreds of steps, it or its product with the rate would be subnormal, and each operation on it
/// ten times slower.
template <int bits, class Element>
[[nodiscard, gnu::always_inline]] constexpr Element flush_to_zero(Element x) noexcept {
  return std::abs(x) < std::numeric_limits<Element>::min() * static_cast<Element>(1 << bits) ? Element{0} : x;
}
/// Returns flush_to_zero(x) for x >= 0, with one operation less.
template <int bits, class Element>
[[nodiscard, gnu::always_inline]] constexpr Element flush_positive_to_zero(Element x) noexcept {
  return x < std::numeric_limits<Element>::min() * static_cast<Element>(1 << bits) ? Element{0} : x;
}

}}}  // namespace lockstep::optim::detail
