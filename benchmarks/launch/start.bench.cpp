// SPDX-License-Identifier: Apache-2.0
// From the call of launch::run to its return, with ranks that connect once and end, against spawning as many processes
// of this program that end at once, which loads the same binary.
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>

#include <rate.hpp>
#include <ratios.hpp>

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
  options.arguments = {"start", "rank", std::to_string(count)};
  options.report = [](std::string const& text) { std::fprintf(stderr, "%s\n", text.c_str()); };
  return options;
}

void spawn_empty(int count) {
  std::vector<pid_t> pids(static_cast<std::size_t>(count));
  char const* const arguments[] = {"start", "empty", nullptr};
  for (auto& pid : pids)
    ::posix_spawn(&pid, "/proc/self/exe", nullptr, nullptr, const_cast<char**>(arguments), environ);
  for (auto const pid : pids) ::waitpid(pid, nullptr, 0);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const role = argc > 1 ? argv[1] : "";
  if (role == "empty") return 0;
  if (role == "rank") return launch::run(ranks(std::stoi(argv[2])), wait_for_all);
  Ratios ratios("launch/start");
  for (int const count : {2, 4})
    ratios.compare(
        "start and meet, " + std::to_string(count) + " processes", "posix_spawn",
        [&](double seconds) {
          return rate(seconds, Time::wall, [&] {
            if (launch::run(ranks(count), wait_for_all) != 0) std::abort();
          });
        },
        [&](double seconds) { return rate(seconds, Time::wall, [&] { spawn_empty(count); }); });
}
