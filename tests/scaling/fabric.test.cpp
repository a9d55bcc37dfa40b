// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/fabric.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
constexpr scaling::Fabric fabric{.message_seconds = 3, .byte_seconds = 0.5};
}

TEST_CASE("a ring takes two messages for each other rank, and nearly twice the bytes") {
  for (Index const ranks : {2, 3, 4, 1024}) {
    auto const cost = fabric.ring(ranks);
    auto const n = static_cast<double>(ranks);
    CHECK(cost.start_seconds == doctest::Approx(3 * 2 * (n - 1)));
    CHECK(cost.byte_seconds == doctest::Approx((n - 1) / n));
  }
}

TEST_CASE("a tree takes two messages for each of its levels, and twice the bytes") {
  for (auto const& [count, levels] : {std::pair{2, 1}, {3, 2}, {4, 2}, {5, 3}, {1024, 10}, {1025, 11}}) {
    Index const ranks = count;
    CAPTURE(ranks);
    CHECK(fabric.tree(ranks).start_seconds == 3 * 2.0 * levels);
    CHECK(fabric.tree(ranks).byte_seconds == 1);
  }
}

TEST_CASE("one rank sends nothing") {
  for (auto const& cost : {fabric.ring(1), fabric.tree(1)}) {
    CHECK(cost.start_seconds == 0);
    CHECK(cost.byte_seconds == 0);
  }
}
