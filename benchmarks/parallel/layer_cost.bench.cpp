// SPDX-License-Identifier: Apache-2.0
// Overhead of DistributedDataParallel in a step with one rank: instructions of a step under it and under SingleDevice,
// counted by callgrind, so that no other work on the machine affects the result.
#include <array>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <unistd.h>

#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <suite.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

template <class Policy>
int train(Policy policy, int steps) {
  Sizes const sizes{.batch = 4};
  Training training(std::move(policy), Classifier(sizes), batch_of(sizes));
  while (steps-- > 0) training.step();
  return 0;
}

/// Instructions that callgrind counts while this program trains that many steps.
std::optional<double> counted(std::string const& policy, int steps) {
  auto const program = "/proc/" + std::to_string(getpid()) + "/exe";
  auto const command = "exec valgrind --tool=callgrind --callgrind-out-file=/dev/null \"$(readlink " + program +
                       ")\" --role=train " + policy + " " + std::to_string(steps) + " 2>&1";
  std::FILE* const pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::optional<double> instructions;
  std::array<char, 512> line{};
  while (std::fgets(line.data(), static_cast<int>(line.size()), pipe)) {
    double count = 0;
    if (auto const* found = std::strstr(line.data(), "Collected : ");
        found && std::sscanf(found, "Collected : %lf", &count) == 1)
      instructions = count;
  }
  if (pclose(pipe) != 0) return std::nullopt;
  return instructions;
}

/// Instructions of one step, without the first, which costs more.
std::optional<double> of_a_step(std::string const& policy) {
  auto const one = counted(policy, 1), two = counted(policy, 2);
  if (!one || !two) return std::nullopt;
  return *two - *one;
}

Role const trained("train", [](std::vector<std::string> const& arguments) {
  int const steps = std::stoi(arguments.at(1));
  if (arguments[0] == "single") return train(parallel::SingleDevice{.threads = 1}, steps);
  return train(parallel::DistributedDataParallel{comm::SelfCommunicator{}, std::size_t{4} << 20, 1}, steps);
});

void add_counted(std::string const& name, std::string const& policy) {
  add(name,
      [policy](benchmark::State& state) {
        auto const instructions = of_a_step(policy);
        if (!instructions) return skip(state, "valgrind did not count (Debian: valgrind)");
        for (auto _ : state) state.counters["instructions"] = *instructions;
        counts_only(state);
      })
      ->Iterations(1)
      ->Repetitions(1);
}

}  // namespace

void register_benchmarks() {
  add_counted("layer_cost/ddp/ranks:1", "ddp");
  add_counted("layer_cost/ddp/ranks:1/peer:single_device", "single");
}
