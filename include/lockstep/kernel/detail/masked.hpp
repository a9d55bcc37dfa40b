// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

template <class Scalar>
using BitsOf = std::conditional_t<sizeof(Scalar) == 4, std::uint32_t, std::uint64_t>;

/// Returns x if all bits of `kept` are 1, and 0 if they are 0. For loops: g++ compiles a selection between a product
/// and zero to a branch, which prevents vectorization.
template <class Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar masked(Scalar x, BitsOf<Scalar> kept) noexcept {
  return std::bit_cast<Scalar>(std::bit_cast<BitsOf<Scalar>>(x) & kept);
}

/// Returns x if `condition` holds, and y otherwise. For loops: g++ compiles a selection whose operands are computed, or
/// whose condition another selection shares, to a branch.
template <class Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar selected(bool condition, Scalar x, Scalar y) noexcept {
  using Bits = BitsOf<Scalar>;
  Bits const first = condition ? ~Bits{0} : Bits{0};
  return std::bit_cast<Scalar>((std::bit_cast<Bits>(x) & first) | (std::bit_cast<Bits>(y) & ~first));
}

}}}  // namespace lockstep::kernel::detail
