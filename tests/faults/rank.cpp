// SPDX-License-Identifier: Apache-2.0
// A program whose ranks run all-reduces forever, or for --steps: the fault scripts kill it at random instants.
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/store/store_communicator.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/run/run.hpp>

using namespace lockstep;

namespace {

/// Prints one line with the time since 1970 in nanoseconds, as `date +%s%N` does.
void say(std::string const& text) {
  std::timespec now{};
  std::timespec_get(&now, TIME_UTC);
  std::fprintf(stderr, "%lld%09ld %s\n", static_cast<long long>(now.tv_sec), now.tv_nsec, text.c_str());
}

/// Writes the process id for the script, as early as possible.
void sign_in() {
  auto const* const folder = std::getenv("FAULTS_FOLDER");
  auto const place = launch::detect();
  if (!folder || place.launcher == launch::Launcher::single) return;
  auto const name = std::string(folder) + "/" + std::to_string(place.rank);
  if (auto* const file = std::fopen((name + ".new").c_str(), "we")) {
    std::fprintf(file, "%d\n", static_cast<int>(::getpid()));
    std::fclose(file);
    std::rename((name + ".new").c_str(), name.c_str());
  }
}

int add_up(launch::World& world, long steps) {
  auto communicator = world.store ? comm::AnyCommunicator(comm::StoreCommunicator(world)) : comm::connect(world);
  auto const elements = std::size_t{1} << 14;
  auto const memory = communicator.allocate(elements * sizeof(float));
  auto* const data = reinterpret_cast<float*>(memory.data());
  for (long step = 0; step != steps; ++step) {
    for (std::size_t i = 0; i < elements; ++i) data[i] = static_cast<float>(step % 100 + world.rank);
    comm::CollectiveOperation operation;
    operation.data = data;
    operation.count = static_cast<Index>(elements);
    communicator.start(operation);
    communicator.finish();
    auto const expected = static_cast<float>(world.size * (step % 100) + world.size * (world.size - 1) / 2);
    if (data[elements - 1] != expected) throw std::runtime_error("a wrong sum");
    if (step == 0 && world.rank == 0) say("all ranks have added up");
    if (step % 1000 == 999 && world.rank == 0 && world.store) say("step " + std::to_string(step + 1));
    if (step % 8 == 0) ::usleep(300);  // idle, for faults between operations
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  launch::Options options;
  long steps = -1;
  for (int i = 1; i + 1 < argc; i += 2) {
    std::string const flag = argv[i];
    if (flag == "--nproc") options.nproc = std::atoi(argv[i + 1]);
    if (flag == "--engine" && std::string(argv[i + 1]) == "store") options.engine = launch::Engine::store;
    if (flag == "--steps") steps = std::atol(argv[i + 1]);
    if (flag == "--warn") options.limits.warn_seconds = std::atof(argv[i + 1]);
    if (flag == "--join") options.join_seconds = std::atof(argv[i + 1]);
    if (flag == "--silence") options.limits.silence_seconds = std::atof(argv[i + 1]);
  }
  options.arguments.assign(argv, argv + argc);
  options.warn = [](std::string const& text) { say("warning: " + text); };
  options.report = [](std::string const& text) { say("verdict: " + text); };
  try {
    sign_in();
    return launch::run(options, [&](launch::World& world) {
      try {
        return add_up(world, steps);
      } catch (std::exception const& error) {
        say("survivor " + std::to_string(world.rank) + ": " + error.what());
        throw;
      }
    });
  } catch (std::exception const& error) {
    say(std::string("error: ") + error.what());
    return launch::exit_code(error);
  }
}
