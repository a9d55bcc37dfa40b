// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/atomic_file.hpp>

#include <doctest/doctest.h>

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>

#include "temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("a file appears complete at commit, and never without it") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "a";
  {
    train::AtomicFile file(path);
    file.write("lost");
  }
  CHECK(folder.entries() == 0);
  lockstep_test::write_file(path, "old");
  {
    train::AtomicFile file(path);
    file.write("new ");
    file.write("text");
    CHECK(lockstep_test::read_file(path) == "old");
    file.commit();
  }
  CHECK(lockstep_test::read_file(path) == "new text");
  CHECK(folder.entries() == 1);
}

TEST_CASE("the content may be replaced before commit") {
  lockstep_test::TemporaryFolder folder;
  train::AtomicFile file(folder / "a");
  file.write("ten bytes.");
  file.overwrite(4, "marks");
  file.commit();
  CHECK(lockstep_test::read_file(folder / "a") == "ten marks.");
}

TEST_CASE("two files written to one place are each complete, and the last one counts") {
  lockstep_test::TemporaryFolder folder;
  auto const path = folder / "a";
  train::AtomicFile first(path), second(path);
  first.write("first"), second.write("the second");
  second.commit();
  CHECK(lockstep_test::read_file(path) == "the second");
  first.commit();
  CHECK(lockstep_test::read_file(path) == "first");
  CHECK(folder.entries() == 1);
}

TEST_CASE("a symbolic link stays one") {
  lockstep_test::TemporaryFolder folder;
  lockstep_test::write_file(folder / "target", "old");
  REQUIRE(::symlink("target", (folder / "link").c_str()) == 0);
  {
    train::AtomicFile file(folder / "link");
    file.write("new");
    file.commit();
  }
  CHECK(lockstep_test::read_file(folder / "target") == "new");
  CHECK(lockstep_test::read_file(folder / "link") == "new");
  CHECK(folder.entries() == 2);
}

TEST_CASE("a link to a missing file stays one, also through another link, and permissions are kept") {
  lockstep_test::TemporaryFolder folder;
  std::filesystem::create_directory(folder / "deep");
  REQUIRE(::symlink("deep/second", (folder / "first").c_str()) == 0);
  REQUIRE(::symlink("target", (folder / "deep/second").c_str()) == 0);
  auto const write = [&](char const* text) {
    train::AtomicFile file(folder / "first");
    file.write(text);
    file.commit();
  };
  write("new");
  CHECK(std::filesystem::is_symlink(folder / "first"));
  CHECK(lockstep_test::read_file(folder / "deep/target") == "new");
  std::filesystem::permissions(folder / "deep/target", std::filesystem::perms(0600));
  write("newer");
  CHECK(std::filesystem::status(folder / "deep/target").permissions() == std::filesystem::perms(0600));
}

TEST_CASE("an unwritable place is named") {
  CHECK_THROWS_WITH_AS(train::AtomicFile(""), "the path of a file to write is empty; name one", DataError);
  CHECK_THROWS_WITH_AS(train::AtomicFile("/no/such/folder/a"),
                       "/no/such/folder/a: cannot create the file: No such file or directory; make its folder first; ~ "
                       "is not expanded",
                       DataError);
  lockstep_test::TemporaryFolder folder;  // reported before any write
  CHECK_THROWS_WITH_AS(train::AtomicFile(folder / "."), doctest::Contains("cannot create the file: Is a directory"),
                       DataError);
}

TEST_CASE("a file size limit is reported with its remedy; no file is left") {
  lockstep_test::TemporaryFolder folder;
  auto* const handler = ::signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  rlimit const tight{1000, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &tight) == 0);
  auto const write = [&] { train::AtomicFile(folder / "a").write(std::string(2000, 'x')); };
  CHECK_THROWS_WITH_AS(write(), doctest::Contains("raise the limit on the size of files (ulimit -f"), DataError);
  ::setrlimit(RLIMIT_FSIZE, &before);
  ::signal(SIGXFSZ, handler);
  CHECK(folder.entries() == 0);
}
