// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// Returns x if all bits of `kept` are 1, and 0 if they are 0. For loops: g++ compiles a selection between a product
/// and zero to a branch, which prevents vectorisation.
template <class T>
[[nodiscard, gnu::always_inline]] constexpr T masked(T x, BitsOf<T> kept) noexcept {
  return std::bit_cast<T>(std::bit_cast<BitsOf<T>>(x) & kept);
}

}}}  // namespace lockstep::kernel::detail
