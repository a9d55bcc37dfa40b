// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/cache_options.hpp>

#include <cstdlib>
#include <string>

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../temporary_folder.hpp"

using namespace lockstep;

TEST_CASE("--cache names a folder, `none` means memory, and by default large sources are cached in the user's cache") {
  lockstep_test::TemporaryFolder const home;
  ::setenv("XDG_CACHE_HOME", home.path().c_str(), 1);
  app::Options options;
  options.cores = 3;
  Progress progress;
  auto const standard = app::cache_options(options, "", true, progress);
  CHECK(standard.folder == home / "lockstep");
  CHECK(standard.min_bytes == (8u << 20));
  CHECK(standard.threads == 3);
  CHECK(standard.verify);
  CHECK(standard.progress == &progress);
  auto const named = app::cache_options(options, "folder", false, progress);
  CHECK(named.folder == "folder");
  CHECK(named.min_bytes == 0);
  CHECK_FALSE(named.verify);
  CHECK(app::cache_options(options, "none", true, progress).folder.empty());
  if (::geteuid() == 0) {  // another user's folder, which only root can make here: memory
    REQUIRE(::chown((home / "lockstep").c_str(), 12345, 12345) == 0);
    CHECK(app::cache_options(options, "", true, progress).folder.empty());
  }
  REQUIRE(::chmod((home / "lockstep").c_str(), 0777) == 0);
  CHECK(app::cache_options(options, "", true, progress).folder.empty());
  lockstep_test::write_file(home / "file", "");
  ::setenv("XDG_CACHE_HOME", (home / "file").c_str(), 1);  // no folder can be created there: memory
  CHECK(app::cache_options(options, "", true, progress).folder.empty());
  ::unsetenv("XDG_CACHE_HOME");
}
