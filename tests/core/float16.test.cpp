// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/float16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

using lockstep::float16;

namespace {

/// Returns the value by definition: sign, exponent and fraction.
double value_of(std::uint32_t bits) {
  auto const exponent = static_cast<int>(bits >> 10 & 0x1f);
  double const fraction = bits & 0x3ff;
  double const magnitude = exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(fraction + 1024, exponent - 25);
  return bits & 0x8000 ? -magnitude : magnitude;
}

float16 of(std::uint32_t bits) {
  float16 x;
  x.bits = static_cast<std::uint16_t>(bits);
  return x;
}

}  // namespace

TEST_CASE("every float16 has the value that its bits define, and survives a round trip through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    auto const x = of(bits);
    auto const back = float16(static_cast<float>(x));
    if ((bits & 0x7fff) > 0x7c00)
      wrong += !std::isnan(static_cast<float>(x)) || !std::isnan(static_cast<float>(back));
    else if ((bits & 0x7fff) == 0x7c00)
      wrong += !std::isinf(static_cast<float>(x)) || back.bits != bits;
    else
      wrong += static_cast<double>(static_cast<float>(x)) != value_of(bits) || back.bits != bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding is to nearest, ties to even") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x7bff; ++bits) {
    float const below = of(bits), above = of(bits + 1), middle = below + (above - below) / 2;
    wrong += float16(std::nextafter(middle, 0.0f)).bits != bits;
    wrong += float16(std::nextafter(middle, above)).bits != bits + 1;
    wrong += float16(middle).bits != (bits % 2 == 0 ? bits : bits + 1);
    wrong += float16(-middle).bits != (float16(middle).bits | 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("values that are too large become infinite, values that are too small zero") {
  CHECK(float16(65519.0f).bits == 0x7bff);
  CHECK(float16(65520.0f).bits == 0x7c00);  // halfway between the largest number and its successor
  CHECK(float16(-std::numeric_limits<float>::max()).bits == 0xfc00);
  CHECK(float16(std::ldexp(1.0f, -25)).bits == 0);
  CHECK(float16(std::numeric_limits<float>::denorm_min()).bits == 0);
  CHECK(std::isnan(static_cast<float>(float16(std::numeric_limits<float>::quiet_NaN()))));
  CHECK(std::is_same_v<lockstep::Accumulate<float16>, float>);
}
