// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_raw.hpp>

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

TEST_CASE("records have one size, with or without a file header") {
  TemporaryFolder const folder;
  write_file(folder / "a", "head" + bytes_of(std::vector<std::uint16_t>{1, 2, 3, 4, 5, 6}));
  auto const array = data::open_raw<std::uint16_t>(folder / "a", {3}, 4);
  CHECK(array.shape() == std::vector<Index>{2, 3});
  std::vector<std::uint16_t> row(3);
  array.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::uint16_t>{4, 5, 6});
  CHECK(data::open_raw<std::uint8_t>(folder / "a", {}).rows() == 16);
  CHECK(data::open_raw<std::uint8_t>(folder / "a", {4}, 16).rows() == 0);

  CHECK_THROWS_WITH_AS(data::open_raw<float>(folder / "a", {3}), doctest::Contains("16 bytes of records"), DataError);
  CHECK_THROWS_AS(data::open_raw<float>(folder / "a", {1}, 17), DataError);
  CHECK_THROWS_AS(data::open_raw<float>(folder / "none", {1}), DataError);
  CHECK_THROWS_WITH_AS(data::open_raw<float>(folder / "a", {2, 0}), doctest::Contains("extent 0"), ConfigError);
  CHECK_THROWS_AS(data::open_raw<float>(folder / "a", {std::numeric_limits<Index>::max(), 2}), ConfigError);
}
