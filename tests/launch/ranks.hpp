// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <string>

#include <lockstep/launch/run/run.hpp>

/// Ranks as processes, for tests: copies of the test program that run one of its hidden cases.
namespace lockstep_test {

namespace launch = lockstep::launch;

struct Outcome {
  int code = 0;
  std::string report;  // empty if no rank failed
};

/// Runs the hidden case `rank_case` on n processes. Such a case is marked doctest::skip() and calls be_rank.
inline Outcome run_processes(int n, std::string const& rank_case, launch::Options options = {}) {
  Outcome outcome;
  options.nproc = n;
  options.arguments = {"test", "--test-case=" + rank_case, "--no-skip=true"};
  options.report = [&](std::string const& text) { outcome.report += text; };
  outcome.code = launch::run(options, [](launch::World&) { return 99; });
  return outcome;
}

/// The body of a hidden case: ends the process with the rank's return value. Does nothing in a process that is not a
/// rank.
inline void be_rank(std::function<int(launch::World&)> const& train, launch::Options const& options = {}) {
  if (std::getenv("LOCKSTEP_RANK") == nullptr) return;
  for (int const number : {SIGINT, SIGTERM}) ::signal(number, SIG_DFL);  // doctest reports them as crashes
  std::_Exit(launch::run(options, train));
}

/// A folder with one name for this process and its ranks; removed by the process that created it.
class Scratch {
 public:
  Scratch() {
    char name[] = "/tmp/lockstep-test-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path_ = name;
    ::setenv(variable, name, 1);
  }
  Scratch(Scratch const&) = delete;
  Scratch& operator=(Scratch const&) = delete;
  ~Scratch() {
    ::unsetenv(variable);
    std::filesystem::remove_all(path_);
  }

  static std::string path(std::string const& name) {
    return (std::filesystem::path(std::getenv(variable)) / name).string();
  }
  static void write(std::string const& name, std::string const& text) {
    std::ofstream(path(name)) << text << std::flush;
  }
  static std::string read(std::string const& name) {
    std::ifstream file(path(name));
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  static constexpr char variable[] = "LOCKSTEP_TEST_SCRATCH";
  std::filesystem::path path_;
};

/// Lockstep's names in /dev/shm; other programs on this machine create and remove names of their own there.
inline std::set<std::string> shared_names() {
  std::set<std::string> out;
  for (auto const& entry : std::filesystem::directory_iterator("/dev/shm"))
    if (auto const name = entry.path().string(); name.find("lockstep") != std::string::npos) out.insert(name);
  return out;
}

/// Checked one by one: a bare tree has no /proc.
inline int open_files() {
  int count = 0;
  for (int file = 0; file < 1024; ++file) count += ::fcntl(file, F_GETFD) != -1;
  return count;
}

/// Checks that the work during its lifetime left no process, no open file, and no name of ours in /dev/shm.
class NothingLeft {
 public:
  ~NothingLeft() {
    bool const no_child = ::waitpid(-1, nullptr, WNOHANG) == -1 && errno == ECHILD;
    CHECK(no_child);
    CHECK(open_files() == files_);
    CHECK(shared_names() == names_);
  }

 private:
  int files_ = open_files();
  std::set<std::string> names_ = shared_names();
};

inline bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace lockstep_test
