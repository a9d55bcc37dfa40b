// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// bfloat16: the upper half of a float32, with its range and 8 bits of precision. A storage type: it converts to float
/// for arithmetic.
struct bfloat16 {          // NOLINT(readability-identifier-naming): named like the built-in types
  std::uint16_t bits = 0;  ///< sign, 8 bits of exponent, 7 of fraction

  constexpr bfloat16() = default;
  /// Rounds to nearest, ties to even; nan stays nan.
  constexpr explicit bfloat16(float x) noexcept : bits(rounded(x)) {}
  /// Returns the same number.
  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): widening loses nothing
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
  }

 private:
  static constexpr std::uint16_t rounded(float number) noexcept {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if (!std::is_constant_evaluated()) {  // one instruction for two numbers instead of seven for each
      std::uint16_t y;
      asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(y) : "f"(number));
      return y;
    }
#endif
    auto const x = std::bit_cast<std::uint32_t>(number);
    bool const nan = (x & 0x7fffffffu) > 0x7f800000u;
    auto const nearest = (x + 0x7fffu + (x >> 16 & 1u)) >> 16;
    return static_cast<std::uint16_t>(nan ? x >> 16 | 0x40u : nearest);
  }
};

namespace detail {
template <class Value>
struct AccumulateOf {
  using type = Value;
};
template <>
struct AccumulateOf<bfloat16> {
  using type = float;
};
}  // namespace detail

/// Accumulator type for sums of Value: float for bfloat16 and float16, otherwise Value.
template <class Value>
using Accumulate = typename detail::AccumulateOf<Value>::type;

}}  // namespace lockstep
