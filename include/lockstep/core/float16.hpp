// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// IEEE 754 binary16: 5 bits of exponent, 11 of precision, up to 65504. A storage type: it converts to float for
/// arithmetic.
struct float16 {           // NOLINT(readability-identifier-naming): named like the built-in types
  std::uint16_t bits = 0;  ///< sign, 5 bits of exponent, 10 of fraction

  constexpr float16() = default;
  /// Rounds to nearest, ties to even; too large values become infinite; nan stays nan.
  constexpr explicit float16(float x) noexcept : bits(rounded(x)) {}
  /// Returns the same number.
  constexpr operator float() const noexcept {  // NOLINT(google-explicit-constructor): widening loses nothing
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      float y;
      asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(bits));
      return y;
    }
#endif
    auto const magnitude = (bits & 0x7fffu) << 13;
    // Read as a float, the exponent is 112 too small. The product is exact, also for subnormal numbers.
    auto const finite = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) * 0x1p112f);
    auto const value = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
    return std::bit_cast<float>(value | (bits & 0x8000u) << 16);
  }

 private:
  // Free of branches, so that loops over it vectorize.
  static constexpr std::uint16_t rounded(float number) noexcept {
#if defined(__CUDA_ARCH__)
    if (!std::is_constant_evaluated()) {
      std::uint16_t y;
      asm("cvt.rn.f16.f32 %0, %1;" : "=h"(y) : "f"(number));
      return y;
    }
#endif
    auto const x = std::bit_cast<std::uint32_t>(number);
    auto const magnitude = x & 0x7fffffffu;
    // For subnormal results, adding 1/2 makes the processor round at the right place.
    auto const small = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u;
    auto const normal = (magnitude - 0x38000000u + 0xfffu + (magnitude >> 13 & 1u)) >> 13;
    auto const special = magnitude > 0x7f800000u ? 0x7e00u | (magnitude >> 13 & 0x1ffu) : 0x7c00u;
    auto const finite = magnitude < 0x38800000u ? small : normal;
    auto const value = magnitude >= 0x477ff000u ? special : finite;
    return static_cast<std::uint16_t>(value | (x >> 16 & 0x8000u));
  }
};

namespace detail {
template <>
struct AccumulateOf<float16> {
  using type = float;
};
}  // namespace detail

}}  // namespace lockstep
