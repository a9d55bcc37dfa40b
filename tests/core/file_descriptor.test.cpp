// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/file_descriptor.hpp>

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <fstream>
#include <string>
#include <utility>

#include "temporary_folder.hpp"

using lockstep::DataError;
using lockstep::FileDescriptor;

TEST_CASE("an open file is read at an offset, and closed at the end") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "text";
  std::ofstream(path) << "0123456789";
  int number = -1;
  {
    FileDescriptor const file(path);
    number = file.get();
    REQUIRE(number >= 0);
    std::string read(4, ' ');
    CHECK(lockstep::read_at(number, read.data(), 4, 3, path) == 4);
    CHECK(read == "3456");
    CHECK(lockstep::read_at(number, read.data(), 4, 8, path) == 2);
  }
  CHECK(::fcntl(number, F_GETFD) == -1);
}

TEST_CASE("a file without a name is written to at an offset, and leaves nothing in its folder") {
  lockstep_test::TemporaryFolder const folder;
  auto const file = lockstep::unnamed_file(folder / "rows");
  REQUIRE(file.get() >= 0);
  CHECK(folder.entries() == 0);
  CHECK(lockstep::write_at(file.get(), "0123456789", 0));
  CHECK(lockstep::write_at(file.get(), "ab", 4));
  std::string read(10, ' ');
  CHECK(lockstep::read_at(file.get(), read.data(), 10, 0, "rows") == 10);
  CHECK(read == "0123ab6789");
  FileDescriptor const read_only("/dev/null");
  CHECK_FALSE(lockstep::write_at(read_only.get(), "a", 0));
  CHECK(lockstep::unnamed_file("/nonexistent/folder/rows").get() < 0);
}

TEST_CASE("a moved descriptor has one owner, and an assignment closes the previous file") {
  FileDescriptor first("/dev/null"), second("/dev/null");
  auto const kept = first.get(), closed = second.get();
  second = FileDescriptor(std::move(first));
  CHECK(first.get() == -1);
  CHECK(second.get() == kept);
  CHECK(::fcntl(kept, F_GETFD) != -1);
  CHECK(::fcntl(closed, F_GETFD) == -1);
  int const released = second.release();
  CHECK(second.get() == -1);
  CHECK(::close(released) == 0);
}

TEST_CASE("a file that is missing has no descriptor, and a failed read names the path") {
  FileDescriptor const file("/nonexistent/file");
  CHECK(file.get() < 0);
  char byte = 0;
  CHECK_THROWS_WITH_AS(static_cast<void>(lockstep::read_at(file.get(), &byte, 1, 0, "some/file")),
                       doctest::Contains("some/file: cannot be read"), DataError);
}
