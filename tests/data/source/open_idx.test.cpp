// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_idx.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

TEST_CASE("images and labels are read in MNIST's format") {
  TemporaryFolder const folder;
  auto const open = [&](std::string const& bytes) {
    write_file(folder / "a", bytes);
    return data::open_idx(folder / "a");
  };
  using namespace std::string_literals;
  auto const images = open("\0\0\x08\x03\0\0\0\x02\0\0\0\x02\0\0\0\x01"s + "abcd");
  CHECK(images.shape() == std::vector<Index>{2, 2, 1});
  std::vector<std::uint8_t> row(2);
  images.read_rows(1, std::span(row));
  CHECK(row == std::vector<std::uint8_t>{'c', 'd'});
  auto const wide = open("\0\0\x0b\x01\0\0\0\x01\x01\x02"s);
  std::int16_t value = 0;
  wide.read_rows(0, std::span(&value, 1));
  CHECK(value == 0x0102);
  for (char code : {'\x08', '\x09', '\x0b', '\x0c', '\x0d', '\x0e'})
    CHECK(open("\0\0"s + code + "\x01\0\0\0\0"s).rows() == 0);

  auto const refused = [&](std::string const& bytes, char const* why) {
    CHECK_THROWS_WITH_AS(open(bytes), doctest::Contains(why), DataError);
  };
  refused("\x1f\x8b\x08\0"s, "decompress it with gunzip");
  refused("\0\x01\x08\x01\0\0\0\x01"s, "is not an IDX file");
  refused("\0\0\x0a\x01\0\0\0\x01"s, "is not an IDX file");
  refused("\0\0\x08\x01\0\0\0\x03"s + "ab", "needs 3 bytes");
  refused("\0\0\x08\x02\0\0\0"s, "ends at byte");
  refused("\0\0\x0e\xff"s + std::string(255 * 4, '\x7f'), "no memory can hold");
  refused("\0\0\x08\0"s, "a single number");
  refused("\0\0\x08\x01\0\0\0\x01"s + "ab", "has 10 bytes, and an array of the extents [1] has 9");
  refused("", "ends at byte 0");
}
