// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/csv_file.hpp>

#include <doctest/doctest.h>

#include <filesystem>

#include "temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("rows are written one by one, and the file appears with its commit") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "a.csv";
  {
    train::CsvFile file(path, {"file", "text"});
    file.add({"a.npy", "one, two"});
    CHECK_THROWS_WITH_AS(file.add({"b"}), doctest::Contains("a row has 1 cells, and there are 2 columns"), ConfigError);
    file.add({"b", ""});
    CHECK_FALSE(std::filesystem::exists(path));
    file.commit();
  }
  CHECK(lockstep_test::read_file(path) == "file,text\na.npy,\"one, two\"\nb,\n");
  { train::CsvFile const abandoned(folder / "b.csv", {"file"}); }
  CHECK_FALSE(std::filesystem::exists(folder / "b.csv"));
}
