// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// x where all bits of `kept` are 1, and 0 where they are 0. For loops: of a choice between a product and zero g++
/// makes a branch, and it vectorises no loop over one.
template <class T>
[[nodiscard, gnu::always_inline]] constexpr T masked(T x, BitsOf<T> kept) noexcept {
  return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(x) & kept);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
