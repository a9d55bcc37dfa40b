// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/run.hpp>

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include "../temporary_folder.hpp"

using namespace lockstep;
namespace fs = std::filesystem;

namespace {

struct Options : app::Options {
  Index width = 8;
  void flags(app::Command& command) { command.add("--width", width, 1, 64, "How wide"); }
};

// Records the arguments of a trainer's functions, which are plain functions without state.
struct Seen {
  int checks = 0, prepared = 0;
  std::vector<int> ranks;
  Index width = 0;
  std::uint64_t seed = 0;
  std::string saved_flags;
  bool directory_at_check = false;
  std::vector<std::pair<std::string, std::string>> equal_on_all_ranks;
  launch::WaitLimits limits;
};
Seen seen;

void check(Options const& options) {
  ++seen.checks;
  seen.width = options.width;
  seen.seed = options.seed;
  seen.saved_flags = options.saved_flags;
  seen.directory_at_check = fs::exists(options.save_dir);
  if (options.data == "broken") throw DataError("broken:7: is broken\nin two lines");
}
void prepare(Options const& options) {
  ++seen.prepared;
  if (options.data == "broken") throw DataError("broken:7: is broken");
}
int train(app::Training<Options>& training) {
  if (training.world().rank == 0) seen.ranks.push_back(training.world().size);
  if (training.world().rank == 0) seen.equal_on_all_ranks = training.options().equal_on_all_ranks;
  if (training.world().rank == 0) seen.limits = training.world().limits;
  if (training.options().data == "warns") training.world().warn("rank 0: 1 barrier\nrank 1: nothing yet\n");
  if (training.options().data == "is large") throw std::bad_alloc();
  if (training.options().data == "fails") throw std::runtime_error("the device is on fire");
  if (training.options().data == "saves") std::ofstream(training.options().save_dir + "/run.json") << "{}";
  return training.options().data == "three" ? 3 : 0;
}

int run(std::vector<std::string> arguments) {
  seen = {};
  arguments.insert(arguments.begin(), "folder/program");
  std::vector<char*> argv;
  for (auto& argument : arguments) argv.push_back(argument.data());
  return app::run(static_cast<int>(argv.size()), argv.data(), check, train, prepare);
}

/// Returns a run's stderr output.
std::string stderr_of(std::vector<std::string> const& arguments, int code) {
  lockstep_test::TemporaryFolder const folder;
  auto const before = ::dup(2);
  CHECK(std::freopen((folder / "err").c_str(), "w", stderr) != nullptr);
  CHECK(run(arguments) == code);
  std::fflush(stderr);
  ::dup2(before, 2), ::close(before);
  return lockstep_test::read_file(folder / "err");
}

}  // namespace

TEST_CASE("flags are read, input is checked once, and every rank trains") {
  CHECK(run({"--width", "32"}) == 0);
  CHECK(seen.width == 32);
  CHECK(seen.equal_on_all_ranks == std::vector<std::pair<std::string, std::string>>{{"--width", "32"}});
  CHECK(seen.checks == 1);
  CHECK(seen.ranks == std::vector{1});

  CHECK(run({"--parallel", "ddp", "--devices", "3"}) == 0);
  CHECK(seen.checks == 1);
  CHECK(seen.ranks == std::vector{3});
  CHECK(seen.prepared == 0);  // the check prepares for ranks that are started after it
}

TEST_CASE("--evaluate has the seed and the program's flags of the run that saved the parameters") {
  CHECK(run({"--width", "32", "--seed", "18446744073709551615"}) == 0);
  CHECK(seen.saved_flags == "--seed=18446744073709551615\n--width=32\n");

  lockstep_test::TemporaryFolder const folder;
  std::string header = R"({"__metadata__":{"flags":"--seed=7\n--width=16\n--lr=5\n"}})";
  header.resize((header.size() + 7) / 8 * 8, ' ');
  std::uint64_t const length = header.size();
  auto const file = folder / "saved.safetensors";
  lockstep_test::write_file(file, std::string(reinterpret_cast<char const*>(&length), sizeof length) + header);
  CHECK(run({"--evaluate", "--init-from", file}) == 0);
  CHECK(seen.seed == 7);
  CHECK(seen.width == 16);
  CHECK(run({"--evaluate", "--init-from", file, "--seed", "3"}) == 0);
  CHECK(seen.seed == 3);
  CHECK(run({"--init-from", file}) == 0);
  CHECK(seen.seed == 1);
}

TEST_CASE("wrong input exits with 2 before anything trains") {
  CHECK(run({"--width", "0"}) == 2);
  CHECK(run({"--parallel", "single", "--devices", "2"}) == 2);
  CHECK(seen.checks == 0);
  CHECK(run({"--data", "broken"}) == 2);
  CHECK(seen.ranks.empty());
}

TEST_CASE("host-specific errors are reported by one rank per host, all others by rank zero") {
  lockstep_test::TemporaryFolder const folder;
  lockstep_test::write_file(folder / "wide.yaml", "width: 65\n");
  struct Place {
    char const *rank, *local_rank;
  };
  auto const errors_of = [&](Place place, std::vector<std::string> const& arguments) {
    ::setenv("RANK", place.rank, 1), ::setenv("LOCAL_RANK", place.local_rank, 1);
    ::setenv("WORLD_SIZE", "4", 1), ::setenv("LOCAL_WORLD_SIZE", "2", 1);
    auto text = stderr_of(arguments, 2);
    for (auto const* name : {"RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE"}) ::unsetenv(name);
    return text;
  };
  Place const first{"0", "0"}, beside_it{"1", "1"}, next{"2", "0"}, beside_that{"3", "1"};
  auto const missing = folder / "none.yaml", wide = folder / "wide.yaml";
  CHECK(errors_of(first, {"--config", missing}).starts_with("program: --config " + missing + ": cannot be opened"));
  for (auto const& place : {beside_it, beside_that}) CHECK(errors_of(place, {"--config", missing}).empty());
  auto const reported = errors_of(next, {"--config", missing});
  CAPTURE(reported);
  CHECK(reported.starts_with("program: rank 2 on "));
  CHECK(reported.find(": --config " + missing + ": cannot be opened: No such file") != std::string::npos);
  CHECK(errors_of(next, {"--config", wide}).find(wide + ":1: --width 65") != std::string::npos);
  CHECK(errors_of(next, {"--backend", "cuda"}).find(": --backend cuda: ") != std::string::npos);
  CHECK(errors_of(next, {"--width", "65"}).empty());
  std::vector<std::string> const single{"--parallel", "single"};
  CHECK(errors_of(first, single).starts_with("program: --parallel single with 4 ranks"));
  for (auto const& place : {beside_it, next, beside_that}) CHECK(errors_of(place, single).empty());
  lockstep_test::write_file(wide, "parallel: single\n");  // that host's own
  CHECK(errors_of(next, {"--config", wide}).find(": --parallel single with 4 ranks") != std::string::npos);
  CHECK_FALSE(errors_of(first, {"--width", "65"}).empty());
  // Preparation before the ranks meet: one rank of each host reports errors there.
  std::vector<std::string> const broken{"--data", "broken"};
  CHECK(errors_of(first, broken) == "program: broken:7: is broken in two lines\n");
  CHECK(std::pair(seen.checks, seen.prepared) == std::pair(1, 0));
  CHECK(errors_of(beside_it, broken).empty());
  CHECK(std::pair(seen.checks, seen.prepared) == std::pair(0, 1));
  CHECK(errors_of(next, broken).find(": broken:7: is broken\n") != std::string::npos);
  CHECK(errors_of(beside_that, broken).empty());
}

TEST_CASE("a warning of several lines is printed as several lines") {
  CHECK(stderr_of({"--data", "warns"}, 0) == "program: rank 0: 1 barrier\nprogram: rank 1: nothing yet\n");
}

TEST_CASE("flags set the time limits of ranks that wait for each other") {
  CHECK(run({"--parallel", "ddp", "--devices", "2"}) == 0);
  CHECK(seen.limits.stall_seconds == launch::WaitLimits{}.stall_seconds);
  CHECK(seen.limits.silence_seconds == launch::WaitLimits{}.silence_seconds);
  CHECK(run({"--parallel", "ddp", "--devices", "2", "--stall-timeout", "7.5", "--host-timeout", "30"}) == 0);
  CHECK(seen.limits.stall_seconds == 7.5);
  CHECK(seen.limits.silence_seconds == 30);
  CHECK(run({"--parallel", "ddp", "--devices", "2", "--stall-timeout", "0"}) == 0);
  CHECK(seen.limits.stall_seconds == std::numeric_limits<double>::infinity());
}

TEST_CASE("an error during training exits with 1, and train's return value is the exit code") {
  CHECK(run({"--data", "fails"}) == 1);
  CHECK(run({"--data", "fails", "--parallel", "ddp", "--devices", "2"}) == 1);
  CHECK(run({"--data", "three"}) == 3);
}

TEST_CASE("a directory in use by another process is refused, and a closed output pipe does not end the run") {
  auto const directory = fs::temp_directory_path() / ("lockstep-held-" + std::to_string(::getpid()));
  fs::create_directories(directory);
  {
    app::SaveDirLock const held(directory.string());
    CHECK(run({"--save-dir", directory.string()}) == 2);
    CHECK(seen.ranks.empty());
  }
  CHECK(run({"--save-dir", directory.string()}) == 0);
  CHECK(seen.ranks.size() == 1);
  fs::remove_all(directory);
  CHECK(::raise(SIGPIPE) == 0);  // the effect of writing to a closed pipe, which would end this program
  CHECK(::raise(SIGXFSZ) == 0);  // the effect of a file size limit
}

TEST_CASE("--help exits with 0 and does nothing") {
  CHECK(run({"--help"}) == 0);
  CHECK(seen.checks == 0);
  CHECK(seen.ranks.empty());
}

TEST_CASE("the directory is created after all checks, not if one fails, and stays if the run wrote files") {
  auto const directory = fs::temp_directory_path() / ("lockstep-run-" + std::to_string(::getpid()));
  CHECK(run({"--save-dir", directory.string(), "--data", "broken"}) == 2);
  CHECK_FALSE(fs::exists(directory));
  CHECK(run({"--save-dir", directory.string(), "--data", "fails"}) == 1);
  CHECK_FALSE(fs::exists(directory));
  CHECK(run({"--save-dir", directory.string(), "--data", "saves"}) == 0);
  CHECK_FALSE(seen.directory_at_check);
  CHECK(fs::is_directory(directory));
  fs::remove_all(directory);
}

TEST_CASE("out-of-memory errors are reported in one sentence with remedies") {
  auto const text = stderr_of({"--data", "is large"}, 1);
  CHECK(text.starts_with("program: out of memory: the host, or a limit such as ulimit -v, refused memory ("));
  CHECK(std::ranges::count(text, '\n') == 1);
}
