// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/each_file.hpp>

#include <string>

#include <doctest/doctest.h>
#include <sys/resource.h>
#include <unistd.h>
#include <lockstep/data/combine/concat.hpp>
#include <lockstep/data/source/text_lines_dataset.hpp>

#include "../../sanitized.hpp"
#include "../../temporary_folder.hpp"

using namespace lockstep;
using lockstep_test::TemporaryFolder;

TEST_CASE("each file becomes a dataset, in the order of their paths, with equal arguments") {
  TemporaryFolder const folder;
  lockstep_test::write_file(folder / "b.txt", "three\n");
  lockstep_test::write_file(folder / "a.txt", "one\ntwo\n");
  lockstep_test::write_file(folder / "a.csv", "not this one\n");
  auto const parts =
      data::each_file<data::TextLinesDataset>(folder / "*.txt", data::TextLinesOptions{.max_held_bytes = 0});
  REQUIRE(parts.size() == 2);
  data::Concat const lines{parts};
  REQUIRE(lines.size() == 3);
  CHECK(lines.get(1) == "two");
  CHECK(lines.get(2) == "three");
  CHECK_THROWS_WITH_AS(static_cast<void>(data::each_file<data::TextLinesDataset>(folder / "*.tar")),
                       doctest::Contains("*.tar\" matches no file"), DataError);
}

#if !LOCKSTEP_SANITIZED  // UndefinedBehaviorSanitizer reads memory through a pipe, and reports an error without one
TEST_CASE("a folder that cannot be opened for lack of descriptors is an error, and not an empty folder") {
  TemporaryFolder const folder;
  lockstep_test::write_file(folder / "a.txt", "one\n");
  struct NoDescriptors {
    ::rlimit before{};
    NoDescriptors() {
      ::getrlimit(RLIMIT_NOFILE, &before);
      int const lowest_free = ::dup(STDERR_FILENO);
      ::close(lowest_free);
      ::rlimit const limit{static_cast<::rlim_t>(lowest_free), before.rlim_max};
      ::setrlimit(RLIMIT_NOFILE, &limit);
    }
    ~NoDescriptors() { ::setrlimit(RLIMIT_NOFILE, &before); }
  } const none;
  CHECK_THROWS_WITH_AS(static_cast<void>(data::each_file<data::TextLinesDataset>(folder / "*.txt")),
                       doctest::Contains("cannot be searched: Too many open files; raise how many"), DataError);
}
#endif
