// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/text_lines_dataset.hpp>

#include <cstddef>
#include <string>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

static_assert(data::NamesSamples<data::TextLinesDataset> && data::HasFingerprint<data::TextLinesDataset>);

TEST_CASE("lines have their numbers, and empty lines are skipped") {
  TemporaryFolder const folder;
  write_file(folder / "a",
             "\xef\xbb\xbf"
             "one\r\n\n  \ntwo words \nlast");
  data::TextLinesDataset const lines(folder / "a");
  REQUIRE(lines.size() == 3);
  CHECK(lines.get(0) == "one");
  CHECK(lines.get(1) == "two words ");
  CHECK(lines.get(2) == "last");
  CHECK(lines.name(1) == folder / "a:4");
  auto const print = lines.fingerprint();
  write_file(folder / "a", "one\n\n  \ntwo wordz \nlast");
  CHECK(data::TextLinesDataset(folder / "a").fingerprint() != print);
  CHECK(lines.get(0) == "one");  // lines that were read stay valid
}

TEST_CASE("lines of a larger file are read on demand and are equal") {
  TemporaryFolder const folder;
  constexpr std::size_t block = std::size_t{1} << 16;  // size of one read
  for (std::size_t const length : {block - 5, block - 4, block - 3, block - 2, block - 1, block, 3 * block}) {
    std::string const longest(length, 'x');
    write_file(folder / "a", "\xef\xbb\xbf" + longest + "\r\n\n \r\ny\n\n" + longest);
    data::TextLinesDataset const held(folder / "a"), read(folder / "a", {.max_held_bytes = length});
    for (auto const& lines : {held, read}) {
      REQUIRE(lines.size() == 3);
      CHECK(lines.get(0) == longest);
      CHECK(lines.get(1) == "y");
      CHECK(lines.get(2) == longest);
      CHECK(lines.name(0) == folder / "a:1");
      CHECK(lines.name(1) == folder / "a:4");
      CHECK(lines.name(2) == folder / "a:6");
    }
    CHECK(held.fingerprint() == read.fingerprint());
    write_file(folder / "a", "z");
    CHECK_THROWS_WITH_AS(static_cast<void>(read.get(1)), doctest::Contains("a: ends at byte 1"), DataError);
    CHECK(held.get(1) == "y");
  }
}

TEST_CASE("a line longer than 64 MiB is refused") {
  TemporaryFolder const folder;
  write_file(folder / "a", std::string((std::size_t{1} << 26) + 1, 'x'));
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "a"),
                       doctest::Contains("a:1: the line is longer than 67108864 bytes"), DataError);
}

TEST_CASE("a missing file, a non-text file and an empty file are refused") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(data::TextLinesDataset(folder / "none"), DataError);
  write_file(folder / "zeros", std::string(10, '\0'));
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "zeros"), doctest::Contains("is not text"), DataError);
  write_file(folder / "blank", "\n \r\n\n");
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "blank"), doctest::Contains("holds no line"), DataError);
}
