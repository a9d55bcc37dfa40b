// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/text_lines_dataset.hpp>

#include <string>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

static_assert(data::NamesSamples<data::TextLinesDataset> && data::HasFingerprint<data::TextLinesDataset>);

TEST_CASE("lines with their numbers, empty ones left out") {
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
  CHECK(lines.get(0) == "one");  // what was read stays
}

TEST_CASE("no file, no text, no line") {
  TemporaryFolder const folder;
  CHECK_THROWS_AS(data::TextLinesDataset(folder / "none"), DataError);
  write_file(folder / "zeros", std::string(10, '\0'));
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "zeros"), doctest::Contains("is not text"), DataError);
  write_file(folder / "blank", "\n \r\n\n");
  CHECK_THROWS_WITH_AS(data::TextLinesDataset(folder / "blank"), doctest::Contains("holds no line"), DataError);
}
