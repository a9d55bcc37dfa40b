// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/run.hpp>

#include <unistd.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

struct Options : app::Options {
  Index width = 8;
  void flags(app::Command& command) { command.add("--width", width, 1, 64, "How wide"); }
};

// What the functions that a trainer hands over were told; they are plain functions, so they leave it here.
struct Seen {
  int checks = 0;
  std::vector<int> ranks;
  Index width = 0;
  bool directory_at_check = false;
};
Seen seen;

void check(Options const& options) {
  ++seen.checks;
  seen.width = options.width;
  seen.directory_at_check = fs::exists(options.save_dir);
  if (options.data == "broken") throw DataError("broken:7: is broken\nin two lines");
}
int train(app::Training<Options>& training) {
  if (training.world().rank == 0) seen.ranks.push_back(training.world().size);
  if (training.options().data == "fails") throw std::runtime_error("the device is on fire");
  return training.options().data == "three" ? 3 : 0;
}

int run(std::vector<std::string> arguments) {
  seen = {};
  arguments.insert(arguments.begin(), "folder/program");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  return app::run(static_cast<int>(argv.size()), argv.data(), check, train);
}

}  // namespace

TEST_CASE("flags are read, input is checked once, and every rank trains") {
  CHECK(run({"--width", "32"}) == 0);
  CHECK(seen.width == 32);
  CHECK(seen.checks == 1);
  CHECK(seen.ranks == std::vector{1});

  CHECK(run({"--parallel", "ddp", "--devices", "3"}) == 0);
  CHECK(seen.checks == 1);
  CHECK(seen.ranks == std::vector{3});
}

TEST_CASE("wrong input exits with 2 before anything trains") {
  CHECK(run({"--width", "0"}) == 2);
  CHECK(run({"--parallel", "single", "--devices", "2"}) == 2);
  CHECK(seen.checks == 0);
  CHECK(run({"--data", "broken"}) == 2);
  CHECK(seen.ranks.empty());
}

TEST_CASE("an error while training exits with 1, and what train returns is the exit code") {
  CHECK(run({"--data", "fails"}) == 1);
  CHECK(run({"--data", "fails", "--parallel", "ddp", "--devices", "2"}) == 1);
  CHECK(run({"--data", "three"}) == 3);
}

TEST_CASE("--help exits with 0 and does nothing") {
  CHECK(run({"--help"}) == 0);
  CHECK(seen.checks == 0);
  CHECK(seen.ranks.empty());
}

TEST_CASE("the directory appears after all checks, and not when one fails") {
  auto const directory = fs::temp_directory_path() / ("lockstep-run-" + std::to_string(::getpid()));
  CHECK(run({"--save-dir", directory.string(), "--data", "broken"}) == 2);
  CHECK_FALSE(fs::exists(directory));
  CHECK(run({"--save-dir", directory.string()}) == 0);
  CHECK_FALSE(seen.directory_at_check);
  CHECK(fs::is_directory(directory));
  fs::remove_all(directory);
}
