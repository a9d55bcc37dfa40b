// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/regular_file.hpp>

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <string>

#include <lockstep/core/clock.hpp>

#include "temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

TEST_CASE("only a regular file is opened, and nothing waits for the writer of a pipe") {
  TemporaryFolder const folder;
  auto const path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  auto const refused = [&](std::string const& name, char const* why) {
    CHECK_THROWS_WITH_AS(static_cast<void>(open_regular_file(name)), doctest::Contains(why), DataError);
  };
  auto const before = Clock::seconds();
  refused(path, "pipe: is not a regular file; every rank reads it, so copy it to one");
  CHECK(Clock::seconds() - before < 2);
  refused("/dev/zero", "/dev/zero: is not a regular file");
  refused(folder.path().string(), "is a directory; give a file in it");
  refused(folder / "none", "none: cannot be opened: No such file or directory; check the path");
  lockstep_test::write_file(folder / "file", "text");
  auto const opened = open_regular_file(folder / "file");
  CHECK(opened.size() == 4);
  CHECK(opened.is_own());
  CHECK(opened.modified_ns() > 0);
}

TEST_CASE("text of a claimed length is read only if it exists") {
  TemporaryFolder const folder;
  auto const path = folder / "text";
  lockstep_test::write_file(path, "some text");
  CHECK(read_text_file(path, 9) == "some text");
  CHECK_THROWS_WITH_AS(static_cast<void>(read_text_file(path, 8)), doctest::Contains("has 9 bytes, and at most 8"),
                       DataError);
  auto const opened = open_regular_file(path);
  CHECK(read_text_at(opened.file.get(), 5, 4, path, "the word") == "text");
  CHECK(read_text_at(opened.file.get(), 5, 0, path, "the word").empty());
  CHECK_THROWS_WITH_AS(static_cast<void>(read_text_at(opened.file.get(), 5, 5, path, "the word")),
                       doctest::Contains("ends within the word, after 4 of its 5 bytes"), DataError);
  std::filesystem::resize_file(path, std::uintmax_t{5} << 30);  // a hole
  CHECK_THROWS_WITH_AS(static_cast<void>(read_text_file(path, std::uint64_t{6} << 30)),
                       doctest::Contains("the text of 5368709120 bytes holds a zero byte at offset 9"), DataError);
}

TEST_CASE("a file of another user is not this process's own") {
  TemporaryFolder const folder;
  auto const path = folder / "file";
  lockstep_test::write_file(path, "");
  if (::geteuid() != 0) return;  // only root can give a file away
  REQUIRE(::chown(path.c_str(), 12345, static_cast<::gid_t>(-1)) == 0);
  CHECK_FALSE(open_regular_file(path).is_own());
}
