// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_npy.hpp>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

struct File {
  TemporaryFolder folder;
  data::FileArray open(std::string const& bytes) const {
    write_file(folder / "a.npy", bytes);
    return data::open_npy(folder / "a.npy");
  }
};

}  // namespace

TEST_CASE("numbers of every type, format version and byte order") {
  File const file;
  auto const array = file.open(npy_of("<f4", "(3, 2)", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6})));
  CHECK(array.type() == data::NumberType::of<float>());
  CHECK(array.shape() == std::vector<Index>{3, 2});
  std::vector<float> row(2);
  array.read_rows(2, std::span(row));
  CHECK(row == std::vector<float>{5, 6});
  CHECK(file.open(npy_of("|u1", "(3,)", "abc")).width() == 1);
  CHECK(file.open(npy_of("|b1", "(1, 3)", "abc")).type().name() == "bool");
  CHECK(file.open(npy_of("<i8", "(0,)", "")).rows() == 0);
  auto const swapped = file.open(npy_of(">i2", "(1,)", std::string("\x01\x02")));
  std::int16_t value = 0;
  swapped.read_rows(0, std::span(&value, 1));
  CHECK(value == 0x0102);
  for (char const number : {'\1', '\2', '\3'})
    CHECK(file.open(npy("{'shape': (2,), 'fortran_order': False, 'descr': '<u2'}", "abcd", number)).rows() == 2);
}

TEST_CASE("damaged and unreadable files are refused with file and reason") {
  File const file;
  auto const refused = [&](std::string const& bytes, char const* why) {
    CHECK_THROWS_WITH_AS(file.open(bytes), doctest::Contains(why), DataError);
  };
  auto const whole = npy_of("<f4", "(3, 2)", std::string(24, 'x'));
  for (std::size_t length = 0; length < whole.size(); ++length)
    CHECK_THROWS_AS(file.open(whole.substr(0, length)), DataError);
  refused("\x93NUMPZ" + whole.substr(6), "does not begin as a .npy file does");
  refused(npy("{}", "", 4), "version 4");
  refused(npy("{}", "", 0), "version 0");
  refused(npy_of("<f4x", "(1,)", "abcd"), "of the type \"<f4x\"");
  refused(npy_of("<f4", "()", "abcd"), "is a single number");
  refused(npy_of("<f4", "(-1,)", ""), "the extent \"-1\"");
  refused(npy_of("<f4", "(x,)", ""), "the extent \"x\"");
  refused(npy_of("<f4", "(9223372036854775807, 4)", ""), "no memory can hold");
  refused(npy_of("<f4", "(99999999999999999999,)", ""), "the extent");
  refused(npy_of("<c8", "(1,)", std::string(8, 'x')), "of the type \"<c8\"");
  refused(npy_of("|O", "(1,)", std::string(8, 'x')), "of the type");
  refused(npy_of("<f3", "(1,)", std::string(8, 'x')), "of the type");
  refused(npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2), }", std::string(16, 'x')), "column by column");
  refused(npy("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,), }", "abcd"), "the fortran_order \"1\"");
  refused(npy_of("|V2", "(2,)", "abcd"), "bfloat16 as ml_dtypes saves it");
  refused(npy("{'descr': '<f4', 'fortran_order': False, }", "abcd"), "lacks descr or shape");
  refused(npy("{'descr': [('a', '<f4')], 'shape': (1,), }", "abcd"), "are records of several fields");
  refused(npy("{descr: '<f4', }", "abcd"), "no '''");
  refused(npy("{'colour': 'red', }", ""), "the key \"colour\"");
  for (auto const* key : {"'descr': '<f4', ", "'fortran_order': False, ", "'shape': (1,), "})
    refused(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), " + std::string(key) + "}", "abcd"), "twice");
  refused(npy_of("<f4", "(1,)", "abcdefgh"), "of shape [1] is followed by 4 other bytes");
  refused(npy("{'descr': '<f4', 'shape': (1,)} + 1", "abcd"), "continues after its closing brace");
  refused(npy("{'descr': '<f4', 'shape': (1,)" + std::string(70'000, ' ') + "}", "abcd", 2),
          "claims that the header has 70031 bytes, and at most 65535 are read");
  refused(npy("{'descr': '<f4", ""), "a quote that does not close");
}

TEST_CASE("a column-major array with one extent other than 1 is read, as Julia and Fortran write vectors") {
  File const file;
  for (auto const* shape : {"(3,)", "(3, 1)", "(1, 3)", "(1, 3, 1)"}) {
    auto const header = std::string("{'descr': '<f4', 'fortran_order': True, 'shape': ") + shape + ", }";
    CHECK(file.open(npy(header, bytes_of(std::vector<float>{1, 2, 3}))).numbers<float>() ==
          std::vector<float>{1, 2, 3});
  }
}

TEST_CASE("bfloat16 is read as ml_dtypes saves it") {
  File const file;
  auto const array = file.open(npy_of("<V2", "(3,)", bytes_of(std::vector<std::uint16_t>{0x3f80, 0x4000, 0xc040})));
  CHECK(array.type().name() == "bfloat16");
  CHECK(array.numbers<float>() == std::vector<float>{1, 2, -3});
}

TEST_CASE("a bool is 0 or 1") {
  File const file;
  bool two[2]{};
  file.open(npy_of("|b1", "(2,)", std::string("\0\1", 2))).read_rows(0, std::span<bool>(two));
  CHECK(!two[0]);
  CHECK(two[1]);
  CHECK(file.open(npy_of("|b1", "(2,)", std::string("\0\1", 2))).numbers<std::uint8_t>() ==
        std::vector<std::uint8_t>{0, 1});
  auto const damaged = file.open(npy_of("|b1", "(2,)", "\1\2"));
  CHECK_THROWS_WITH_AS(damaged.read_rows(0, std::span<bool>(two)), doctest::Contains("has 2 for a bool at byte"),
                       DataError);
}
