// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/detail/sorted_rows.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/mix.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using train::detail::NumberedLine, train::detail::SortedRows;

namespace {

struct Sink {
  std::string text = {};
  void write(std::string_view more) { text += more; }
};

std::string line_of(Index sample) {
  return "row " + std::to_string(sample) + std::string(static_cast<std::size_t>(sample % 37), '.');
}

/// Adds a line for each sample, several at once.
void add(SortedRows& rows, std::vector<Index> const& samples) {
  std::string lines;
  for (auto const sample : samples) {
    NumberedLine{sample, line_of(sample)}.append_to(lines);
    if (sample % 3 == 0) rows.add(std::exchange(lines, {}));
  }
  rows.add(lines);
}
std::string text_of(SortedRows& rows) {
  Sink sink;
  rows.write_to(sink);
  return sink.text;
}

}  // namespace

TEST_CASE("lines in any order, with duplicates, are sorted in memory and by runs in a file") {
  lockstep_test::TemporaryFolder const folder;
  for (Index const count : {0, 1, 31, 32, 33, 1000}) {
    std::vector<Index> samples;
    std::string expected;
    for (Index i = 0; i < count; ++i) {
      samples.push_back(i * 2);
      expected += line_of(i * 2) + "\n";
    }
    auto const ordered = samples;
    for (std::uint64_t seed = 0; seed < 3; ++seed) {
      std::sort(samples.begin(), samples.end(), [seed](Index a, Index b) {
        return mix(seed, static_cast<std::uint64_t>(a)) < mix(seed, static_cast<std::uint64_t>(b));
      });
      auto twice = samples;
      twice.insert(twice.end(), ordered.begin(), ordered.begin() + count / 2);
      for (std::size_t const part : {std::size_t{1}, std::size_t{100}, std::size_t{1} << 20}) {
        SortedRows rows(folder / "table.csv", part);
        add(rows, twice);
        CHECK(text_of(rows) == expected);
      }
    }
    CHECK(std::filesystem::is_empty(folder / ""));
  }
}

TEST_CASE("the first of several lines of one sample is kept") {
  lockstep_test::TemporaryFolder const folder;
  for (std::size_t const part : {std::size_t{1}, std::size_t{1} << 20}) {
    SortedRows rows(folder / "table.csv", part);
    for (auto const& [sample, text] : {std::pair<Index, char const*>{4, "a"}, {2, "b"}, {4, "c"}, {2, "d"}}) {
      std::string line;
      NumberedLine{sample, text}.append_to(line);
      rows.add(line);
    }
    CHECK(text_of(rows) == "b\na\n");
  }
}

TEST_CASE("memory is bounded by a part's size, and ordered lines need no merge") {
  lockstep_test::TemporaryFolder const folder;
  constexpr std::size_t part = 10000;
  SortedRows in_order(folder / "a.csv", part), backward(folder / "b.csv", part);
  std::size_t most = 0;
  constexpr Index count = 20000;
  for (Index i = 0; i < count; ++i) {
    add(in_order, {i});
    add(backward, {count - i});
    most = std::max({most, in_order.held_bytes(), backward.held_bytes()});
  }
  CHECK(most <= 2 * part);
  CHECK(in_order.runs() == 1);
  CHECK(backward.runs() > 50);
  auto const text = text_of(backward);
  CHECK(text.starts_with(line_of(1) + "\n" + line_of(2) + "\n"));
  CHECK(std::ranges::count(text, '\n') == count);
}

TEST_CASE("an unwritable folder is reported with the table's name") {
  lockstep_test::TemporaryFolder const folder;
  SortedRows rows(folder / "none/table.csv", 1);
  std::string line;
  NumberedLine{1, "a"}.append_to(line);
  CHECK_THROWS_WITH_AS(rows.add(line), doctest::Contains("none/table.csv: cannot create a temporary file next to it"),
                       DataError);
}
