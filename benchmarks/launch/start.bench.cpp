// SPDX-License-Identifier: Apache-2.0
// From the call of launch::run to its return, with ranks that connect once and end, against spawning as many processes
// of this program that end at once, which loads the same binary.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>

#include <suite.hpp>

using namespace lockstep;
using namespace lockstep_bench;

namespace {

int wait_for_all(launch::World& world) {
  comm::connect(world).barrier();
  return 0;
}

launch::Options ranks(int count) {
  launch::Options options;
  options.nproc = count;
  options.arguments = {"start", "--role=rank", std::to_string(count)};
  options.report = [](std::string const& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  return options;
}

void spawn_empty(int count) {
  std::vector<pid_t> pids(static_cast<std::size_t>(count));
  char const* const arguments[] = {"start", "--role=empty", nullptr};
  for (auto& pid : pids)
    ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environ);
  for (auto const pid : pids) ::waitpid(pid, nullptr, 0);
}

Role const empty("empty", [](std::vector<std::string> const&) { return 0; });
Role const rank("rank", [](std::vector<std::string> const& arguments) {
  return launch::run(ranks(std::stoi(arguments.at(0))), wait_for_all);
});

}  // namespace

void register_benchmarks() {
  for (int const count : {2, 4}) {
    auto const name = "start/processes:" + std::to_string(count);
    add(name, [count](benchmark::State& state) {
      for (auto _ : state)
        if (launch::run(ranks(count), wait_for_all) != 0) throw std::runtime_error("the ranks failed");
    })->UseRealTime();
    add(name + "/peer:posix_spawn", [count](benchmark::State& state) {
      for (auto _ : state) spawn_empty(count);
    })->UseRealTime();
  }
}
