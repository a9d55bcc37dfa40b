// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/folder.hpp>

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <utility>

#include "temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("temporary files are in TMPDIR, or in /tmp if it is unset or empty") {
  auto const* const set = std::getenv("TMPDIR");
  std::string const before = set ? set : "";
  ::setenv("TMPDIR", "/some/folder", 1);
  CHECK(temporary_folder() == "/some/folder");
  ::setenv("TMPDIR", "", 1);
  CHECK(temporary_folder() == "/tmp");
  ::unsetenv("TMPDIR");
  CHECK(temporary_folder() == "/tmp");
  if (set) ::setenv("TMPDIR", before.c_str(), 1);
}

TEST_CASE("the nearest existing path is the path, or a parent of it") {
  lockstep_test::TemporaryFolder const folder;
  lockstep_test::write_file(folder / "file", "");
  auto const here = folder.path().string();
  for (auto const& each : {std::pair{here, here},
                           {here + "/file", here + "/file"},
                           {here + "/new", here},
                           {here + "/new/deep/", here},
                           {here + "/file/below/deep", here + "/file"},
                           {std::string("/no such folder/deep"), std::string("/")},
                           {std::string("no such folder/deep"), std::string(".")},
                           {std::string(""), std::string("")}}) {
    CAPTURE(each.first);
    CHECK(nearest_existing(each.first) == each.second);
  }
}
