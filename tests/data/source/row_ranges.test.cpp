// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/row_ranges.hpp>

#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;
using data::RowRanges;

TEST_CASE("single rows, lengths and offsets give each sample's row range") {
  RowRanges const each;
  CHECK(each.single());
  CHECK(each.samples(7) == 7);
  CHECK(each.used(7) == 7);
  CHECK(each.first(3) == 3);
  CHECK(each.count(3) == 1);

  auto const ranges = RowRanges::of_lengths(std::vector<std::int32_t>{2, 0, 3});
  CHECK_FALSE(ranges.single());
  CHECK(ranges.samples(5) == 3);
  CHECK(ranges.used(99) == 5);
  CHECK(ranges.first(2) == 2);
  CHECK(ranges.count(1) == 0);
  CHECK(ranges.count(2) == 3);
  CHECK(ranges.fingerprint() == RowRanges::of_offsets({0, 2, 2, 5}).fingerprint());
  CHECK(ranges.fingerprint() != RowRanges::of_offsets({0, 2, 3, 5}).fingerprint());
  CHECK(RowRanges::of_lengths(std::vector<Index>{}).samples(0) == 0);
}

TEST_CASE("windows overlap, and end at the array's end or earlier") {
  auto const each = RowRanges::windows({.length = 3});
  CHECK_FALSE(each.single());
  CHECK(each.samples(5) == 3);
  CHECK(each.samples(3) == 1);
  CHECK(each.samples(2) == 0);
  CHECK(each.samples(0) == 0);
  CHECK(each.used(5) == 5);
  CHECK(each.first(2) == 2);
  CHECK(each.count(2) == 3);

  auto const some = RowRanges::windows({.length = 3, .stride = 2, .first = 10, .end = 18});
  CHECK(some.samples(99) == 3);  // from rows 10, 12 and 14
  CHECK(some.used(99) == 18);
  CHECK(some.first(2) == 14);
  CHECK(RowRanges::windows({.length = 3, .stride = 2, .first = 10, .end = 17}).samples(99) == 3);
  CHECK(RowRanges::windows({.length = 3, .stride = 2, .first = 10, .end = 16}).samples(99) == 2);
  CHECK(RowRanges::windows({.length = 3, .first = 10, .end = 12}).samples(99) == 0);
  CHECK(RowRanges::windows({.length = 3, .end = 0}).samples(99) == 0);  // an empty part, not the whole array

  CHECK(some.fingerprint() == RowRanges::windows({.length = 3, .stride = 2, .first = 10, .end = 18}).fingerprint());
  for (auto const& other : {RowRanges::windows({.length = 4, .stride = 2, .first = 10, .end = 18}),
                            RowRanges::windows({.length = 3, .stride = 1, .first = 10, .end = 18}),
                            RowRanges::windows({.length = 3, .stride = 2, .first = 11, .end = 18}),
                            RowRanges::windows({.length = 3, .stride = 2, .first = 10, .end = 19}), RowRanges{}})
    CHECK(some.fingerprint() != other.fingerprint());
}

TEST_CASE("invalid windows are refused by option") {
  auto const refuses = [](data::RowWindows const& windows, char const* text) {
    CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::windows(windows)), doctest::Contains(text), ConfigError);
  };
  refuses({.length = 0}, "the windows' length is 0; it must be at least 1");
  refuses({.length = 1, .stride = 0}, "stride is 0");
  refuses({.length = 1, .first = -1}, "first row is -1; it must be at least 0");
  refuses({.length = 1, .end = -4}, "end is -4");
}

TEST_CASE("invalid lengths and offsets are refused by number") {
  auto const most = std::numeric_limits<Index>::max();
  CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::of_lengths(std::vector<int>{3, -1})),
                       doctest::Contains("length 1 is -1"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::of_lengths(std::vector<Index>{most, 1})),
                       doctest::Contains("length 1 is 1"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::of_offsets({})), doctest::Contains("missing"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::of_offsets({4, 5})), doctest::Contains("first offset is 4"),
                       DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(RowRanges::of_offsets({0, 5, 3})), doctest::Contains("offset 2 is 3, after 5"),
                       DataError);
}
