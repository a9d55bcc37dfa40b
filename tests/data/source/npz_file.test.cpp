// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/npz_file.hpp>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"
#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

std::string archive(TemporaryFolder const& folder, bool zip64 = false) {
  write_file(folder / "a.npz", zip({{"x.npy", npy_of("<f4", "(3, 2)", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}))},
                                    {"label.npy", npy_of("<i8", "(3,)", bytes_of(std::vector<std::int64_t>{7, 8, 9}))},
                                    {"notes.txt", "none"}},
                                   zip64));
  return folder / "a.npz";
}

}  // namespace

TEST_CASE("one archive provides all of its arrays by name") {
  TemporaryFolder const folder;
  for (bool const zip64 : {false, true}) {
    data::NpzFile const file(archive(folder, zip64));
    CHECK(file.path() == folder / "a.npz");
    CHECK(file.names() == std::vector<std::string>{"x", "label"});
    CHECK(file.has("label"));
    CHECK_FALSE(file.has("notes"));
    CHECK(file.array("x").numbers<float>() == std::vector<float>{1, 2, 3, 4, 5, 6});
    CHECK(file.array("label").numbers<std::int64_t>() == std::vector<std::int64_t>{7, 8, 9});
    CHECK_THROWS_WITH_AS(static_cast<void>(file.array("labels")),
                         doctest::Contains("no array \"labels\" among its 2; did you mean \"label\"?"), DataError);
  }
}

TEST_CASE("an array keeps the archive's file open after the archive object is destroyed") {
  TemporaryFolder const folder;
  auto const label = data::NpzFile(archive(folder)).array("label");
  std::filesystem::remove(folder / "a.npz");
  CHECK(label.numbers<std::int64_t>() == std::vector<std::int64_t>{7, 8, 9});
}

TEST_CASE("the end record is found after an archive comment of any length") {
  TemporaryFolder const folder;
  for (std::size_t const length : {1U, 1004U, 1005U, 1024U, 1025U, 60000U}) {
    CAPTURE(length);
    for (bool const zip64 : {false, true}) {
      auto bytes = read_file(archive(folder, zip64));
      bytes[bytes.size() - 2] = static_cast<char>(length & 255),
                           bytes[bytes.size() - 1] = static_cast<char>(length >> 8);
      write_file(folder / "commented.npz", bytes + std::string(length, 'c'));
      CHECK(data::NpzFile(folder / "commented.npz").array("label").rows() == 3);
    }
  }
}
