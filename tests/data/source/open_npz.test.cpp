// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/open_npz.hpp>

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/file_descriptor.hpp>

#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// An archive in memory: thousands of archives per second leave no files on a disk.
struct File {
  FileDescriptor memory{::memfd_create("a.npz", MFD_CLOEXEC)};

  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(memory.get()); }
  void hold(std::string const& bytes) const {
    REQUIRE(::ftruncate(memory.get(), 0) == 0);
    REQUIRE(::pwrite(memory.get(), bytes.data(), bytes.size(), 0) == static_cast<::ssize_t>(bytes.size()));
  }
  data::FileArray open(std::string const& bytes, std::string const& name) const {
    hold(bytes);
    return data::open_npz(path(), name);
  }
};
std::vector<std::pair<std::string, std::string>> files() {
  return {{"x.npy", npy_of("<f4", "(3, 2)", bytes_of(std::vector<float>{1, 2, 3, 4, 5, 6}))},
          {"label.npy", npy_of("<i8", "(3,)", bytes_of(std::vector<std::int64_t>{7, 8, 9}))},
          {"notes.txt", "none"}};
}

}  // namespace

TEST_CASE("arrays are found by name and read in place, with 32-bit and 64-bit directories") {
  File const file;
  for (bool zip64 : {false, true}) {
    auto const x = file.open(zip(files(), zip64), "x");
    std::vector<float> row(2);
    x.read_rows(1, std::span(row));
    CHECK(row == std::vector<float>{3, 4});
    auto const label = file.open(zip(files(), zip64), "label");
    std::int64_t value = 0;
    label.read_rows(2, std::span(&value, 1));
    CHECK(value == 9);
  }
}

TEST_CASE("an array is read from an archive that also has compressed and encrypted files") {
  File const file;
  auto mixed = zip(files());
  auto const notes = mixed.rfind("PK\x01\x02");  // the directory entry of notes.txt, the last
  mixed[notes + 10] = 8;                         // deflated
  CHECK(file.open(mixed, "label").numbers<std::int64_t>() == std::vector<std::int64_t>{7, 8, 9});
  mixed[notes + 8] |= 1;  // encrypted
  CHECK(file.open(mixed, "label").numbers<std::int64_t>() == std::vector<std::int64_t>{7, 8, 9});
}

TEST_CASE("a flipped bit of an array is found by the checksum of the archive") {
  File const file;
  auto const whole = zip(files());
  auto const begin = whole.find("\x93NUMPY"), end = whole.find("PK\x03\x04", begin);
  REQUIRE(end != std::string::npos);
  for (auto at = begin; at < end; ++at) {
    auto damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    CHECK_THROWS_WITH_AS(file.open(damaged, "x"), doctest::Contains("\"x.npy\" does not have the checksum (CRC-32)"),
                         DataError);
    CHECK(data::open_npz(file.path(), "label").rows() == 3);  // another array
  }
  auto damaged = whole;
  damaged[end - 1] = static_cast<char>(damaged[end - 1] ^ 0x80);  // the sign of the last number
  file.hold(damaged);
  auto const trusted = data::open_npz(file.path(), "x", data::NpzChecksums::ignore);
  CHECK(trusted.numbers<float>() == std::vector<float>{1, 2, 3, 4, 5, -6});
}

TEST_CASE("files of an archive do not share bytes, and no name occurs twice") {
  File const file;
  auto const one = files()[0];
  CHECK_THROWS_WITH_AS(file.open(zip({one, one}), "x"), doctest::Contains("has two arrays \"x\""), DataError);
  CHECK(file.open(zip({one, {"notes.txt", "a"}, {"notes.txt", "b"}}), "x").rows() == 3);
  auto shared = zip({one, {"y.npy", one.second}});
  auto const entry = shared.rfind("PK\x01\x02");
  shared.replace(entry + 42, 4, 4, '\0');  // y.npy is where x.npy is
  CHECK_THROWS_WITH_AS(file.open(shared, "x"), doctest::Contains("\"x.npy\" shares bytes with \"y.npy\""), DataError);
  CHECK_THROWS_WITH_AS(file.open(shared, "y"), doctest::Contains("\"y.npy\" has another name in its own header"),
                       DataError);
}

TEST_CASE("damaged and compressed archives are refused") {
  File const file;
  CHECK_THROWS_WITH_AS(file.open(zip(files()), "labels"),
                       doctest::Contains("no array \"labels\" among its 2; did you mean \"label\"?"), DataError);
  CHECK_THROWS_WITH_AS(file.open(zip(files(), false, 8), "x"), doctest::Contains("\"x.npy\" is compressed"), DataError);
  CHECK_THROWS_WITH_AS(file.open("", "x"), doctest::Contains("is not a zip archive"), DataError);
  CHECK_THROWS_WITH_AS(file.open(std::string(100, 'x'), "x"), doctest::Contains("is not a zip archive"), DataError);
  auto reaching = npy_of("<f4", "(0, 2)", "");  // by its length, its header reaches into the next file
  reaching[9] = '\1';
  CHECK_THROWS_WITH_AS(file.open(zip({{"x.npy", reaching}, {"y.npy", std::string(1000, ' ')}}), "x"),
                       doctest::Contains("is larger than its place in the file"), DataError);
  auto const short_data = npy_of("<f4", "(4, 2)", std::string(24, 'x'));
  CHECK_THROWS_WITH_AS(file.open(zip({{"x.npy", short_data}, {"y.npy", std::string(1000, ' ')}}), "x"),
                       doctest::Contains("is larger than its place in the file"), DataError);
  auto encrypted = zip(files());
  encrypted[encrypted.find("PK\x01\x02") + 8] |= 1;
  CHECK_THROWS_WITH_AS(file.open(encrypted, "x"), doctest::Contains("\"x.npy\" is encrypted"), DataError);
  for (bool zip64 : {false, true}) {
    auto const whole = zip(files(), zip64);
    for (std::size_t length = 0; length < whole.size(); ++length)
      CHECK_THROWS_AS(file.open(whole.substr(0, length), "x"), DataError);
    // No byte, whatever its value, may cause a read outside the file.
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (char byte : {'\0', '\xff'}) {
        auto damaged = whole;
        damaged[at] = byte;
        try {
          std::vector<float> row(static_cast<std::size_t>(file.open(damaged, "x").width()));
        } catch (DataError const&) {
        }
      }
    }
  }
}
