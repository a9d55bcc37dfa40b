// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/bfloat16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

using lockstep::bfloat16;

TEST_CASE("every bfloat16 survives a round trip through float") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 65536; ++bits) {
    bfloat16 x;
    x.bits = static_cast<std::uint16_t>(bits);
    auto const back = bfloat16(static_cast<float>(x));
    bool const nan = std::isnan(static_cast<float>(x));
    wrong += nan ? !std::isnan(static_cast<float>(back)) : back.bits != x.bits;
  }
  CHECK(wrong == 0);
}

TEST_CASE("rounding is to nearest, ties to even") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x7f7f; ++bits) {
    bfloat16 low, high;
    low.bits = static_cast<std::uint16_t>(bits);
    high.bits = static_cast<std::uint16_t>(bits + 1);
    float const below = low, above = high, middle = below + (above - below) / 2;
    wrong += bfloat16(std::nextafter(middle, 0.0f)).bits != low.bits && middle != below;
    wrong += bfloat16(std::nextafter(middle, above)).bits != high.bits && middle != below;
    wrong += bfloat16(middle).bits != (bits % 2 == 0 ? low.bits : high.bits) && middle != below;
    wrong += bfloat16(-middle).bits != (bfloat16(middle).bits | 0x8000);
  }
  CHECK(wrong == 0);
}

TEST_CASE("values that are too large become infinite") {
  CHECK(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::max()))));
  CHECK(std::isinf(static_cast<float>(bfloat16(std::numeric_limits<float>::infinity()))));
  CHECK(std::isnan(static_cast<float>(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
}

TEST_CASE("sums of bfloat16 are accumulated in float, other sums in their own type") {
  CHECK(std::is_same_v<lockstep::Accumulate<bfloat16>, float>);
  CHECK(std::is_same_v<lockstep::Accumulate<float>, float>);
  CHECK(std::is_same_v<lockstep::Accumulate<double>, double>);
}
