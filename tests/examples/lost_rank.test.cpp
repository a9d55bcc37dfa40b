// SPDX-License-Identifier: Apache-2.0
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include "examples/program.hpp"

using namespace lockstep_test;
namespace fs = std::filesystem;

namespace {

constexpr double ends_within_seconds = 5;

std::vector<std::string> endless(TemporaryFolder const& folder, int nproc) {
  std::string csv;
  for (int i = 0; i < 400; ++i)
    csv += "\"" + std::to_string(i % 4 + 1) + "\",\"title\",\"some words " + std::to_string(i) + "\"\n";
  return {"--data",       save(folder, "data.csv", csv),
          "--nproc",      std::to_string(nproc),
          "--threads",    "1",
          "--epochs",     "1000000",
          "--d-model",    "16",
          "--batch-size", "8",
          "--save-dir",   folder / "saved"};
}

// Returns true after the ranks have trained some steps together.
bool trains(TemporaryFolder const& folder) {
  for (int tries = 0; tries < 3000; ++tries) {
    if (fs::exists(folder / "saved/metrics.jsonl") && fs::file_size(folder / "saved/metrics.jsonl") > 0) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

// Returns the processes among `pids` that still run, after a short wait: a parent may end before the kernel ends them.
std::vector<pid_t> survivors(std::vector<pid_t> const& pids) {
  std::vector<pid_t> left;
  for (int tries = 0; tries < 50; ++tries) {
    left.clear();
    for (auto pid : pids)
      if (::kill(pid, 0) == 0 && read_file("/proc/" + std::to_string(pid) + "/stat").find(") Z") == std::string::npos)
        left.push_back(pid);
    if (left.empty()) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return left;
}

std::set<std::string> shared_memory() {
  std::set<std::string> names;
  for (auto const& entry : fs::directory_iterator("/dev/shm"))
    if (contains(entry.path().string(), "lockstep")) names.insert(entry.path().string());
  return names;
}

}  // namespace

TEST_CASE("a killed rank ends all others within seconds, and is named") {
  for (int victim : {0, 2}) {
    CAPTURE(victim);
    TemporaryFolder const folder;
    auto const shared_before = shared_memory();
    Program program(example("text_classification"), endless(folder, 3));
    REQUIRE(trains(folder));
    auto const ranks = program.children();
    REQUIRE(ranks.size() == 3);

    auto const pid = ranks[static_cast<std::size_t>(victim)];
    REQUIRE(::kill(pid, SIGKILL) == 0);
    auto const outcome = program.wait(60);
    CAPTURE(outcome.err);
    CHECK(outcome.seconds < ends_within_seconds);
    CHECK(outcome.exit_code == 128 + SIGKILL);
    CHECK(contains(outcome.err, "(pid " + std::to_string(pid) + ")"));
    CHECK(contains(outcome.err, "rank "));
    CHECK(contains(outcome.err, "signal 9"));
    CHECK(outcome.lines_of_err() <= 5);
    CHECK(survivors(ranks).empty());
    CHECK(shared_memory() == shared_before);
    CHECK_FALSE(fs::exists(folder / "saved/run.json"));
  }
}

TEST_CASE("ranks end with the process that started them") {
  TemporaryFolder const folder;
  Program program(example("text_classification"), endless(folder, 2));
  REQUIRE(trains(folder));
  auto const ranks = program.children();
  REQUIRE(ranks.size() == 2);
  REQUIRE(::kill(program.pid(), SIGKILL) == 0);
  CHECK(program.wait(60).exit_code == 128 + SIGKILL);
  CHECK(survivors(ranks).empty());
}

TEST_CASE("an interrupt ends all ranks, and is reported once") {
  TemporaryFolder const folder;
  Program program(example("text_classification"), endless(folder, 2));
  REQUIRE(trains(folder));
  auto const ranks = program.children();
  REQUIRE(::kill(program.pid(), SIGINT) == 0);
  auto const outcome = program.wait(60);
  CAPTURE(outcome.err);
  CHECK(outcome.seconds < ends_within_seconds);
  CHECK(outcome.exit_code == 128 + SIGINT);
  CHECK(outcome.lines_of_err() == 1);
  CHECK(survivors(ranks).empty());
}
