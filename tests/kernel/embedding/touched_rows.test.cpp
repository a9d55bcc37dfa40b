// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/embedding/touched_rows.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <utility>
#include <vector>

using namespace lockstep;
using kernel::TouchedRows;

namespace {
/// A table with its own rows, and their bits.
struct Table {
  std::vector<std::uint64_t> words;
  TouchedRows rows;
  Table(Index offset, Index count, Index width)
      : words(static_cast<std::size_t>(TouchedRows::words_for(count))), rows{offset, count, width, words.data()} {}
};
using Parts = std::vector<std::pair<Index, Index>>;
}  // namespace

TEST_CASE("a row is in the set after its insertion") {
  for (Index count : {1, 31, 32, 33, 63, 64, 65, 1000}) {
    Table t(0, count, 4);
    CHECK(t.rows.count() == 0);
    std::vector<std::int32_t> const odd{1, 63, 64, 999, 1};
    for (auto row : odd)
      if (row < count) t.rows.insert(std::vector<std::int32_t>{row});
    for (Index row = 0; row < count; ++row)
      CHECK(t.rows.contains(row) == (row == 1 || row == 63 || row == 64 || row == 999));
    t.rows.insert_all();
    CHECK(t.rows.count() == count);
    t.rows.clear();
    CHECK(t.rows.count() == 0);
  }
}

TEST_CASE("runs cover the rows in order, alternate, and equal single lookups") {
  CHECK(rc::check("runs", [] {
    auto const count = *rc::gen::inRange<Index>(1, 300);
    Table t(0, count, 1);
    std::vector<bool> expected(static_cast<std::size_t>(count));
    // Long runs too, so that whole words are equal.
    for (int k = *rc::gen::inRange(0, 6); k > 0; --k) {
      auto const first = *rc::gen::inRange<Index>(0, count), length = *rc::gen::inRange<Index>(1, 200);
      for (Index row = first; row < std::min(count, first + length); ++row)
        t.rows.insert(row), expected[static_cast<std::size_t>(row)] = true;
    }
    auto const first = *rc::gen::inRange<Index>(0, count + 1), last = *rc::gen::inRange<Index>(first, count + 1);
    auto at = first;
    int before = -1;
    t.rows.for_runs(first, last, [&](Index begin, Index end, bool touched) {
      RC_ASSERT(begin == at);
      RC_ASSERT(end > begin);
      RC_ASSERT(static_cast<int>(touched) != before);
      for (Index row = begin; row < end; ++row) RC_ASSERT(expected[static_cast<std::size_t>(row)] == touched);
      at = end, before = touched;
    });
    RC_ASSERT(at == last);
  }));
}

TEST_CASE("the written part is all of an arena except the untouched rows of its tables") {
  Table a(16, 4, 3), b(40, 2, 10), empty(60, 0, 5);
  a.rows.insert(1), a.rows.insert(2), b.rows.insert(0);
  TouchedRows const tables[] = {a.rows, b.rows, empty.rows};
  auto const parts = [&](Index begin, Index end) {
    Parts out;
    kernel::for_written(tables, begin, end, [&](Index from, Index to) { out.emplace_back(from, to); });
    return out;
  };
  CHECK(parts(0, 70) == Parts{{0, 16}, {19, 25}, {28, 40}, {40, 50}, {60, 70}});
  CHECK(parts(20, 45) == Parts{{20, 25}, {28, 40}, {40, 45}});  // cuts through rows
  CHECK(parts(16, 19).empty());
  CHECK(parts(17, 20) == Parts{{19, 20}});
  CHECK(parts(50, 60).empty());
  CHECK(parts(5, 5).empty());
}

TEST_CASE("any division of an arena visits the same elements") {
  CHECK(rc::check("cuts", [] {
    Table t(7, 130, *rc::gen::inRange<Index>(1, 9));
    for (auto row : *rc::gen::container<std::vector<Index>>(rc::gen::inRange<Index>(0, 130))) t.rows.insert(row);
    auto const size = t.rows.end() + 20;
    std::vector<bool> written(static_cast<std::size_t>(size));
    auto cuts = *rc::gen::container<std::vector<Index>>(rc::gen::inRange<Index>(0, size));
    cuts.insert(cuts.end(), {0, size});
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 1; i < cuts.size(); ++i)
      kernel::for_written(std::span(&std::as_const(t.rows), 1), cuts[i - 1], cuts[i], [&](Index from, Index to) {
        RC_ASSERT(cuts[i - 1] <= from);
        RC_ASSERT(from < to);
        RC_ASSERT(to <= cuts[i]);
        for (; from < to; ++from) written[static_cast<std::size_t>(from)] = true;
      });
    for (Index i = 0; i < size; ++i) {
      bool const in_table = i >= t.rows.offset && i < t.rows.end();
      RC_ASSERT(written[static_cast<std::size_t>(i)] ==
                (!in_table || t.rows.contains((i - t.rows.offset) / t.rows.width)));
    }
  }));
}
