// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/mix.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <set>

using lockstep::mix;

// The sequence of SplitMix64 from seed 0, as in the reference implementation (Vigna).
static_assert(mix(0) == 0xe220a8397b1dcdaf);
static_assert(mix(0x9e3779b97f4a7c15) == 0x6e789e6aa1b965f4);
static_assert(mix(2 * 0x9e3779b97f4a7c15u) == 0x06c45d188009454f);

TEST_CASE("the order and the number of parts change the key") {
  CHECK(mix(1, 2) != mix(2, 1));
  CHECK(mix(1, 2) != mix(1, 2, 0));
  CHECK(mix(0, 0) != mix(0));
}

TEST_CASE("small parts give distinct keys") {
  std::set<std::uint64_t> keys;
  for (std::uint64_t a = 0; a < 100; ++a)
    for (std::uint64_t b = 0; b < 100; ++b) keys.insert(mix(a, b));
  CHECK(keys.size() == 10'000);
}

TEST_CASE("a key has 16 digits, with leading zeros") {
  CHECK(lockstep::hexadecimal(0) == "0000000000000000");
  CHECK(lockstep::hexadecimal(0x0123456789abcdef) == "0123456789abcdef");
}

TEST_CASE("names give distinct keys that never change") {
  static_assert(mix(std::string_view("a")) == mix(std::uint64_t{0xaf63dc4c8601ec8c}));  // FNV-1a of "a"
  CHECK(mix("weight") != mix("bias"));
  CHECK(mix("") != mix("a"));
}

TEST_CASE("one flipped input bit flips half of the output bits") {
  // 64 flips are fair coins: over 1000 inputs the mean is 32 with a standard deviation of 4 / sqrt(1000) = 0.13.
  for (int bit = 0; bit < 64; ++bit) {
    int flipped = 0;
    for (std::uint64_t i = 0; i < 1000; ++i) flipped += std::popcount(mix(i) ^ mix(i ^ std::uint64_t{1} << bit));
    CAPTURE(bit);
    CHECK(std::abs(flipped / 1000.0 - 32) < 6 * 0.13);
  }
}
