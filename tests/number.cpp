// SPDX-License-Identifier: Apache-2.0
// Has its own copy of Philox: one object cannot use the library both header-only and linked, as the programs do. The
// test of core/philox compares the two.
#include "number.hpp"

double lockstep_test::number(std::uint64_t seed, std::int64_t i) noexcept {
  auto const low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  auto const high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32); };
  auto const number = static_cast<std::uint64_t>(i);
  std::uint32_t key0 = low(seed), key1 = high(seed), x0 = 0, x1 = 0, x2 = low(number), x3 = high(number);
  for (int round = 0; round < 10; ++round) {
    auto const p0 = std::uint64_t{0xD2511F53} * x0, p2 = std::uint64_t{0xCD9E8D57} * x2;
    x0 = high(p2) ^ x1 ^ key0;
    x1 = low(p2);
    x2 = high(p0) ^ x3 ^ key1;
    x3 = low(p0);
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return static_cast<double>(x0 >> 8) * 0x1p-23 - 1;
}
