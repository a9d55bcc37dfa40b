// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/npy_files.hpp>

#include <array>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/data/source/write_npy.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;

namespace {
std::vector<std::string> three_files(lockstep_test::TemporaryFolder const& folder) {
  std::vector<std::string> paths;
  for (std::uint8_t i = 0; i < 3; ++i) {
    std::array<std::uint8_t, 4> const values{i, 1, 2, 3};
    paths.push_back(folder / std::to_string(i) + ".npy");
    data::write_npy<std::uint8_t>(paths.back(), values, {2, 2});
  }
  return paths;
}
std::uint8_t first_of(data::FileArray const& array) {
  std::array<std::uint8_t, 2> row{};
  array.read_rows<std::uint8_t>(0, row);
  return row[0];
}
}  // namespace

TEST_CASE("a few files are mapped and many are opened one at a time, with equal contents") {
  lockstep_test::TemporaryFolder const folder;
  auto const paths = three_files(folder);
  for (Index const most_mapped : {2, 3}) {
    data::NpyFiles const files(paths, most_mapped);
    CHECK(files.size() == 3);
    CHECK(files.path(1) == paths[1]);
    for (Index i = 0; i < 3; ++i) CHECK(first_of(files.array(i)) == i);
  }
}

TEST_CASE("a mapped file is readable after its removal, and an unmapped one is reported as missing") {
  lockstep_test::TemporaryFolder const folder;
  auto const paths = three_files(folder);
  data::NpyFiles const mapped(paths), opened(paths, 0);
  auto const copy = mapped;
  std::filesystem::remove(paths[2]);
  CHECK(first_of(mapped.array(2)) == 2);
  CHECK(first_of(copy.array(2)) == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(opened.array(2)), doctest::Contains("2.npy: cannot be opened"), DataError);
}

TEST_CASE("a missing or damaged file is an error only for its own samples") {
  lockstep_test::TemporaryFolder const folder;
  auto const paths = three_files(folder);
  lockstep_test::write_file(paths[1], "no array");
  for (Index const most_mapped : {0, 3}) {
    data::NpyFiles const files(paths, most_mapped);
    CHECK(first_of(files.array(0)) == 0);
    CHECK_THROWS_WITH_AS(static_cast<void>(files.array(1)), doctest::Contains("1.npy"), DataError);
    CHECK(first_of(files.array(2)) == 2);
  }
}
