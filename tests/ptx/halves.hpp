// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "program.hpp"

/// Number formats of tensor cores: float16, bfloat16, and TF32, a float whose last 13 bits are ignored.
namespace ptx {

[[nodiscard]] constexpr bool is_bfloat(Type type) noexcept { return type == Type::bf16 || type == Type::bf16x2; }

/// Exact.
[[nodiscard]] inline float widened(Type type, std::uint64_t bits) {
  if (is_bfloat(type)) return std::bit_cast<float>(static_cast<std::uint32_t>(bits & 0xffffu) << 16);
  auto const exponent = static_cast<int>(bits >> 10 & 31u);
  auto const mantissa = static_cast<float>(bits & 1023u);
  float value = 0;
  if (exponent == 31)
    value = mantissa == 0 ? std::numeric_limits<float>::infinity() : std::numeric_limits<float>::quiet_NaN();
  else
    value = std::ldexp(exponent == 0 ? mantissa : mantissa + 1024, (exponent == 0 ? 1 : exponent) - 25);
  return (bits >> 15 & 1u) != 0 ? -value : value;
}
/// Rounds to nearest, ties to even, or towards zero.
[[nodiscard]] inline std::uint64_t narrowed(Type type, double value, Rounding rounding = Rounding::nearest) {
  int const digits = is_bfloat(type) ? 7 : 10, least = is_bfloat(type) ? -126 : -14;  // mantissa bits, least exponent
  std::uint64_t const infinity = is_bfloat(type) ? 0x7f80u : 0x7c00u, sign = std::signbit(value) ? 0x8000u : 0;
  if (std::isnan(value)) return 0x7fffu;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  auto const exponent = std::max(std::ilogb(value), least);
  auto const scaled = std::ldexp(std::fabs(value), digits - exponent);
  auto const mantissa = rounding == Rounding::zero ? std::trunc(scaled) : std::nearbyint(scaled);
  // If a mantissa is rounded up to a power of two, it carries into the exponent.
  auto const bits = (static_cast<std::uint64_t>(exponent - least) << digits) + static_cast<std::uint64_t>(mantissa);
  if (bits < infinity) return sign | bits;
  return sign | (rounding == Rounding::zero ? infinity - 1 : infinity);
}

/// Returns a b + c rounded to odd, so that it can be rounded again to half as many digits. The product must be exact.
[[nodiscard]] inline double fused(double a, double b, double c) {
  auto const product = a * b, sum = product + c;
  auto const from_c = sum - product;
  auto const error = (product - (sum - from_c)) + (c - from_c);
  if (error == 0 || !std::isfinite(sum) || (std::bit_cast<std::uint64_t>(sum) & 1u) != 0) return sum;
  return std::nextafter(sum,
                        error > 0 ? std::numeric_limits<double>::infinity() : -std::numeric_limits<double>::infinity());
}

/// Reads a number as tensor cores do.
[[nodiscard]] inline float truncated_to_tf32(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) & ~0x1fffu);
}
/// Rounds to nearest, ties to even or away from zero.
[[nodiscard]] inline std::uint64_t narrowed_to_tf32(std::uint64_t bits, Rounding rounding) {
  if (std::isnan(std::bit_cast<float>(static_cast<std::uint32_t>(bits)))) return 0x7fffffffu;
  auto const up = rounding == Rounding::away ? 0x1000u : 0xfffu + (bits >> 13 & 1u);
  return (bits + up) & 0xffffe000u;
}

/// An operation on two-byte numbers, or on pairs of them. Each result is rounded once.
[[nodiscard]] inline std::uint64_t compute_halves(Instruction const& how, std::uint64_t a_bits, std::uint64_t b_bits,
                                                  std::uint64_t c_bits) {
  auto const one = [&](unsigned shift) -> std::uint64_t {
    auto const a_half = a_bits >> shift & 0xffffu;
    double const a = widened(how.type, a_half), b = widened(how.type, b_bits >> shift);
    switch (how.op) {
      case Op::abs:
        return a_half & 0x7fffu;
      case Op::neg:
        return a_half ^ 0x8000u;
      case Op::add:
        return narrowed(how.type, fused(a, 1, b));
      case Op::sub:
        return narrowed(how.type, fused(a, 1, -b));
      case Op::mul:
        return narrowed(how.type, a * b);
      case Op::fma:
        return narrowed(how.type, fused(a, b, widened(how.type, c_bits >> shift)));
      case Op::min:
        return narrowed(how.type, std::fmin(a, b));
      default:  // max: the only other operation
        return narrowed(how.type, std::fmax(a, b));
    }
  };
  return is_pair(how.type) ? one(0) | one(16) << 16 : one(0);
}

}  // namespace ptx
