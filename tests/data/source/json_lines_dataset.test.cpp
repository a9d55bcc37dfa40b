// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/json_lines_dataset.hpp>

#include <string>

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

TEST_CASE("a line that is not JSON causes an error that names file and line") {
  TemporaryFolder const folder;
  write_file(folder / "a", "1\n{\"text\": }\n");
  data::JsonLinesDataset const lines(folder / "a");
  CHECK(lines.get(0).integer() == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(lines.get(1)), doctest::Contains((folder / "a:2").c_str()), DataError);
}
