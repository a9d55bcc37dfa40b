// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/philox.hpp>

#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <vector>
#include <lockstep/core/instruction_set.hpp>

#include "number.hpp"

using lockstep::normal;
using lockstep::normal_pair;
using lockstep::Philox;
using lockstep::uniform;

// Known answers of the Random123 library (kat_vectors, philox4x32 10).
static_assert(Philox{0}({0, 0, 0, 0}) == Philox::Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(Philox{0xffffffffffffffff}({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}) ==
              Philox::Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
static_assert(Philox{0x299f31d0a4093822}({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}) ==
              Philox::Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});

TEST_CASE("two numbers make the counter, low word first") {
  Philox const random(5);
  CHECK(random(0x0000000200000001u, 0x0000000400000003u) == random({1, 2, 3, 4}));
  CHECK(random(7) == random({7, 0, 0, 0}));
}

TEST_CASE("the numbers of tests are those of Philox") {
  for (std::uint64_t const seed : {0u, 7u, 0xffffffffu})
    for (std::int64_t const i : {std::int64_t{0}, std::int64_t{3}, std::int64_t{1} << 40})
      CHECK(lockstep_test::number(seed * 0x100000001, i) ==
            2 * uniform(Philox(seed * 0x100000001)(0, static_cast<std::uint64_t>(i))[0]) - 1);
}

TEST_CASE("several counters give the blocks of each") {
  Philox const random(0x0123456789abcdefu);
  std::array<std::uint64_t, 3> const seconds{0, 7, 0xfedcba9876543210u};
  auto const blocks = random(0x0000000200000001u, seconds);
  for (std::size_t i = 0; i < seconds.size(); ++i) CHECK(blocks[i] == random(0x0000000200000001u, seconds[i]));
}

TEST_CASE("a loop over counters gives equal bits on every instruction set") {
  constexpr int count = 1000;
  Philox const random(42);
  std::vector<std::uint32_t> expected;
  for (std::uint64_t i = 0; i < count; ++i)
    for (auto word : random(i, 9)) expected.push_back(word);
  for (auto set :
       {lockstep::InstructionSet::baseline, lockstep::InstructionSet::avx2, lockstep::InstructionSet::avx512}) {
    if (set > lockstep::best_instruction_set()) continue;
    std::vector<std::uint32_t> out(4 * count);
    lockstep::with_instructions(set, [=, to = out.data()] {
      for (std::size_t i = 0; i < count; ++i) {
        auto const block = random(i, 9);
        for (std::size_t k = 0; k < 4; ++k) to[4 * i + k] = block[k];
      }
    });
    CHECK(out == expected);
  }
}

TEST_CASE("uniform numbers are in [0, 1) and have 24 bits") {
  CHECK(uniform(0u) == 0.0f);
  CHECK(uniform(0xffu) == 0.0f);
  CHECK(uniform(0x100u) == 0x1p-24f);
  CHECK(uniform(0xffffffffu) == 1.0f - 0x1p-24f);
  CHECK(uniform(0x80000000u) == 0.5f);
}

TEST_CASE("normal numbers are finite at both ends") {
  CHECK(normal_pair(0, 0)[0] == doctest::Approx(std::sqrt(64 * std::log(2.0))));
  CHECK(normal_pair(0, 0)[1] == 0.0);
  CHECK(normal_pair(0xffffffff, 123)[0] == 0.0);
}

TEST_CASE("moments of uniform and normal numbers match the distributions") {
  // A mean of n independent terms of variance v has the standard deviation sqrt(v / n). Five of them are exceeded by
  // chance once in 1.7 million, and the key is fixed.
  constexpr int n = 1 << 18;
  Philox const random(1);
  double first = 0, second = 0, normal1 = 0, normal2 = 0, normal4 = 0, product = 0;
  for (std::uint64_t i = 0; i < n; ++i) {
    double const u = uniform(random, i);
    first += u;
    second += u * u;
    auto const block = random(i, 1);
    auto const [x, y] = normal_pair(block[0], block[1]);
    normal1 += x;
    normal2 += x * x;
    normal4 += x * x * x * x;
    product += x * y;
  }
  auto const within = [&](double sum, double mean, double variance) {
    return std::abs(sum / n - mean) < 5 * std::sqrt(variance / n);
  };
  CHECK(within(first, 0.5, 1.0 / 12));
  CHECK(within(second, 1.0 / 3, 4.0 / 45));  // E u^4 - (E u^2)^2 = 1/5 - 1/9
  CHECK(within(normal1, 0, 1));
  CHECK(within(normal2, 1, 2));   // E x^4 - 1 = 3 - 1
  CHECK(within(normal4, 3, 96));  // E x^8 - 9 = 105 - 9
  CHECK(within(product, 0, 1));
  CHECK(normal(random, 3) == normal_pair(random(3)[0], random(3)[1])[0]);
}

TEST_CASE("every bit of the key and of the counter changes about half of the bits") {
  // A flip is a fair coin: over 64 blocks of 128 bits the count has mean 4096 and standard deviation sqrt(8192) / 2 =
  // 45; six of them bound all 192 cases.
  for (int bit = 0; bit < 192; ++bit) {
    int flipped = 0;
    for (std::uint64_t i = 0; i < 64; ++i) {
      auto const mask = std::uint64_t{1} << bit % 64;
      auto const changed = bit < 64    ? Philox(7 ^ mask)(i, 3)
                           : bit < 128 ? Philox(7)(i ^ mask, 3)
                                       : Philox(7)(i, 3 ^ mask);
      auto const plain = Philox(7)(i, 3);
      for (std::size_t k = 0; k < 4; ++k) flipped += std::popcount(plain[k] ^ changed[k]);
    }
    CAPTURE(bit);
    CHECK(std::abs(flipped - 4096) < 6 * 45);
  }
}
