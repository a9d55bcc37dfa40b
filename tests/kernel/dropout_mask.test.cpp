// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/dropout_mask.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

using lockstep::ConfigError;
using lockstep::kernel::DropoutMask;

TEST_CASE("the mask consists of the half-words of Philox blocks") {
  DropoutMask const mask{99, 20'000};
  for (std::uint64_t block = 0; block < 50; ++block) {
    auto const words = lockstep::Philox(99)(7, block);
    for (std::uint64_t half = 0; half < 8; ++half) {
      auto const bits = half % 2 == 0 ? words[half / 2] & 0xffff : words[half / 2] >> 16;
      CHECK(mask.keeps(7, 8 * block + half) == (bits >= 20'000));
    }
  }
}

TEST_CASE("probabilities are rounded to multiples of 2^-16, and the expectation stays exact") {
  for (double p : {0.0, 1e-9, 0.1, 0.5, 0.9, 0.9999999}) {
    auto const mask = DropoutMask::of(1, p);
    CHECK(std::abs(mask.dropped / 65536.0 - p) <= (p > 0.9999 ? 0x1p-16 : 0x1p-17));
    CHECK(mask.scale() * (65536 - mask.dropped) == doctest::Approx(65536).epsilon(1e-15));
    CHECK(mask.active() == (mask.dropped > 0));
    CHECK(std::isfinite(mask.scale()));
  }
  CHECK_FALSE(DropoutMask::of(1, 0).active());
  CHECK_FALSE(DropoutMask{}.active());
}

TEST_CASE("a fraction p of the elements is dropped at every half-word, and masks differ by key and position") {
  // n p +- 5 sqrt(n p (1 - p)) of n independent draws are dropped: a false alarm once in 1.7 million checks.
  double const p = 0.25, n = 20'000;
  auto const mask = DropoutMask::of(5, p), other = DropoutMask::of(6, p);
  double const bound = 5 * std::sqrt(n * p * (1 - p));
  for (std::uint64_t half = 0; half < 8; ++half) {
    double dropped = 0, same_key = 0, same_position = 0;
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      auto const e = 8 * i + half;
      dropped += !mask.keeps(3, e);
      same_key += mask.keeps(3, e) == other.keeps(3, e);
      same_position += mask.keeps(3, e) == mask.keeps(4, e);
    }
    CHECK(std::abs(dropped - n * p) <= bound);
    double const agree = p * p + (1 - p) * (1 - p), agree_bound = 5 * std::sqrt(n * agree * (1 - agree));
    CHECK(std::abs(same_key - n * agree) <= agree_bound);
    CHECK(std::abs(same_position - n * agree) <= agree_bound);
  }
}

TEST_CASE("a probability outside [0, 1) is refused with the value") {
  for (double p : {-0.1, 1.0, 1.5, std::numeric_limits<double>::quiet_NaN()})
    CHECK_THROWS_WITH_AS(static_cast<void>(DropoutMask::of(1, p)), doctest::Contains("must be in [0, 1)"), ConfigError);
}
