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

}}}  // namespace lockstep::kernel::detail
