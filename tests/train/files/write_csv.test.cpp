// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/write_csv.hpp>

#include <doctest/doctest.h>

#include "temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("texts become cells, quoted if necessary") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "a.csv";
  train::write_csv(path, {"file", "text"},
                   {{"a.npy", "one, two"}, {"", "say \"x\""}, {"b", "lines\nof text"}, {"ü", ""}});
  CHECK(lockstep_test::read_file(path) ==
        "file,text\na.npy,\"one, two\"\n,\"say \"\"x\"\"\"\nb,\"lines\nof text\"\nü,\n");
  train::write_csv(path, {"text"}, {{""}});
  CHECK(lockstep_test::read_file(path) == "text\n\"\"\n");
}

TEST_CASE("a row of another length is refused, and the file is unchanged") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "a.csv";
  train::write_csv(path, {"a"}, {{"1"}});
  CHECK_THROWS_WITH_AS(train::write_csv(path, {"a", "b"}, {{"1", "2"}, {"3"}}), doctest::Contains("has 1 cells"),
                       ConfigError);
  CHECK(lockstep_test::read_file(path) == "a\n1\n");
  CHECK_THROWS_AS(train::write_csv(folder / "none/a.csv", {"a"}, {}), DataError);
}
