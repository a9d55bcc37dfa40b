// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/json_lines_dataset.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/combine/transform.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

TEST_CASE("each line holds one value, and samples are made from values") {
  TemporaryFolder const folder;
  write_file(folder / "a", "{\"text\":\"good\",\"label\":1}\n\n{\"text\":\"bad\\n\",\"label\":0}\n");
  data::JsonLinesDataset const lines(folder / "a");
  CHECK(lines.size() == 2);
  CHECK(lines.get(1).at("text").string() == "bad\n");
  CHECK(lines.name(1) == folder / "a:3");
  data::Transform const labels{lines, [](json::Value const& value) { return value.at("label").integer(); }};
  CHECK(labels.get(0) == 1);
}

TEST_CASE("half of a surrogate pair is read as U+FFFD") {
  TemporaryFolder const folder;
  write_file(folder / "a", R"(["\ud83d\ude00"]
["cut \ud83d"]
["\ud83d\n"]
["\ude00x"]
["\ud83d\ud83d\ude00"]
["\ud83d\u0041"]
)");
  data::JsonLinesDataset const lines(folder / "a");
  std::string const emoji = "\xf0\x9f\x98\x80", replacement = "\xef\xbf\xbd";
  std::vector<std::string> const expected{
      emoji, "cut " + replacement, replacement + "\n", replacement + "x", replacement + emoji, replacement + "A"};
  for (std::size_t i = 0; i < expected.size(); ++i)
    CHECK(lines.get(static_cast<Index>(i)).at(0).string() == expected[i]);
}

TEST_CASE("NaN and infinities are refused with the line and the remedy") {
  TemporaryFolder const folder;
  write_file(folder / "a", "{\"x\": NaN}\n[Infinity]\n-Infinity\n");
  data::JsonLinesDataset const lines(folder / "a");
  auto const refused = [&](Index i, char const* why) {
    CHECK_THROWS_WITH_AS(static_cast<void>(lines.get(i)), doctest::Contains(why), DataError);
  };
  refused(0, "a value is needed, and JSON has no NaN; write null, or a number");
  refused(1, "JSON has no Infinity");
  refused(2, "JSON has no -Infinity");
}

TEST_CASE("a line that is not JSON causes an error that names file and line") {
  TemporaryFolder const folder;
  write_file(folder / "a", "1\n{\"text\": }\n");
  data::JsonLinesDataset const lines(folder / "a");
  CHECK(lines.get(0).integer() == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(lines.get(1)), doctest::Contains((folder / "a:2").c_str()), DataError);
}

TEST_CASE("a value that a sample cannot be made of is refused with file and line") {
  TemporaryFolder const folder;
  write_file(folder / "a", "{}\n\n{}\n");
  data::JsonLinesDataset const lines(folder / "a");
  CHECK_THROWS_WITH_AS(lines.refuse(1, "has no \"label\""), (folder / "a:3: has no \"label\"").c_str(), DataError);
}
