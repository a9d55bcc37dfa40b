// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/synthetic_data.hpp>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

#include <doctest/doctest.h>
#include <unistd.h>

#include "../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
namespace fs = std::filesystem;

namespace {

struct Caller {
  TemporaryFolder folder;
  app::Options options;
  int written = 0;

  Caller() {
    options.program = "toy";
    ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  }
  ~Caller() { ::unsetenv("XDG_CACHE_HOME"); }
  std::string get(std::string const& recipe) {
    return app::data_folder(options, recipe, [&](fs::path const& place) {
      ++written;
      write_file((place / "a.txt").string(), recipe);
    });
  }
};

}  // namespace

TEST_CASE("--data is returned unchanged") {
  Caller caller;
  caller.options.data = "/somewhere/else";
  CHECK(caller.get("three rows") == "/somewhere/else");
  CHECK(caller.written == 0);
}

TEST_CASE("synthetic data are written once into SAVE_DIR/data") {
  Caller caller;
  caller.options.save_dir = caller.folder / "run";
  auto const place = caller.get("three rows");
  CHECK(place == caller.folder / "run/data");
  CHECK(read_file(place + "/a.txt") == "three rows");
  CHECK(read_file(place + "/synthetic.txt") == "three rows\n");
  CHECK(caller.get("three rows") == place);
  CHECK(caller.written == 1);
  CHECK(std::distance(fs::directory_iterator(caller.folder / "run"), {}) == 1);
}

TEST_CASE("without --save-dir and for a dry run, each recipe's data are in the user's cache") {
  Caller caller;
  auto const place = caller.get("three rows");
  CHECK(place.starts_with(caller.folder / "cache/lockstep/toy-"));
  CHECK(caller.get("four rows") != place);
  caller.options.save_dir = caller.folder / "run";
  caller.options.dry_run = true;
  CHECK(caller.get("three rows") == place);
  CHECK(caller.written == 2);
  CHECK_FALSE(fs::exists(caller.folder / "run"));
}

TEST_CASE("data of another user are not used, and none are written where everybody may write") {
  if (::geteuid() != 0) return;  // only root can give a folder away
  Caller caller;
  auto const place = caller.get("three rows");
  REQUIRE(::chown((place + "/synthetic.txt").c_str(), 12345, 12345) == 0);
  CHECK_THROWS_WITH_AS(caller.get("three rows"), doctest::Contains("is not the synthetic data set"), ConfigError);
  fs::remove_all(place);
  auto const cache = caller.folder / "cache/lockstep";
  REQUIRE(::chown(cache.c_str(), 12345, 12345) == 0);
  CHECK_THROWS_WITH_AS(caller.get("three rows"), doctest::Contains("cache/lockstep: belongs to another user"),
                       ConfigError);
  CHECK(fs::is_empty(cache));
}

TEST_CASE("a folder with other contents is refused and left unchanged") {
  Caller caller;
  caller.options.save_dir = caller.folder / "run";
  fs::create_directories(caller.folder / "run/data");
  write_file(caller.folder / "run/data/mine.txt", "mine");
  CHECK_THROWS_WITH_AS(caller.get("three rows"), doctest::Contains("is not the synthetic data set \"three rows\""),
                       ConfigError);
  CHECK(read_file(caller.folder / "run/data/mine.txt") == "mine");
  CHECK(caller.written == 0);
}

TEST_CASE("data of another recipe are refused") {
  Caller caller;
  caller.options.save_dir = caller.folder / "run";
  static_cast<void>(caller.get("three rows"));
  CHECK_THROWS_WITH_AS(caller.get("four rows"), doctest::Contains("remove it, name another --save-dir"), ConfigError);
}

TEST_CASE("a failed write leaves no files") {
  Caller caller;
  caller.options.save_dir = caller.folder / "run";
  auto const fails = [](fs::path const& place) {
    write_file((place / "a.txt").string(), "half");
    throw std::runtime_error("the disk is full");
  };
  CHECK_THROWS_WITH_AS(app::data_folder(caller.options, "three rows", fails), "the disk is full", std::runtime_error);
  CHECK(fs::is_empty(caller.folder / "run"));
  CHECK(caller.get("three rows") == caller.folder / "run/data");
}

TEST_CASE("a save directory that cannot be created is refused") {
  Caller caller;
  write_file(caller.folder / "file", "");
  caller.options.save_dir = caller.folder / "file";
  CHECK_THROWS_WITH_AS(caller.get("three rows"), doctest::Contains("cannot be created for synthetic data"),
                       ConfigError);
}
