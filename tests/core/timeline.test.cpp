// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/timeline.hpp>

#include <doctest/doctest.h>

#include <utility>

using namespace lockstep;

TEST_CASE("a timeline keeps entries up to its capacity, in order, and counts the rest") {
  for (std::size_t const room : {0u, 1u, 3u}) {
    Timeline timeline(room);
    for (int i = 0; i < 3; ++i) timeline.add({.name = "span", .begin = 1.0 * i, .end = 1.0 * i + 1});
    REQUIRE(timeline.size() == room);
    CHECK(timeline.left_out() == static_cast<Index>(3 - room));
    for (std::size_t i = 0; i < room; ++i) CHECK(timeline[i].begin == static_cast<double>(i));
  }
}

TEST_CASE("the last entry can be completed after it was added") {
  Timeline timeline(4);
  timeline.add({.name = "first", .begin = 1});
  timeline.add({.name = "second", .begin = 2});
  timeline[1].end = 5;
  CHECK(std::as_const(timeline)[0].end == 0);
  CHECK(timeline[1].end == 5);
  CHECK(timeline.end() - timeline.begin() == 2);
}
