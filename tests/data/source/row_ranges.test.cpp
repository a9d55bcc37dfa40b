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
