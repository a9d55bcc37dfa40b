// SPDX-License-Identifier: Apache-2.0
// Overhead of DistributedDataParallel in a step with one rank: instructions of a step under it and under SingleDevice,
// counted by callgrind, so that no other work on the machine affects the result.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include <unistd.h>

#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <ratios.hpp>
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
  auto const command = "exec valgrind --tool=callgrind --callgrind-out-file=/dev/null $(readlink " + program + ") " +
                       policy + " " + std::to_string(steps) + " 2>&1";
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

}  // namespace

int main(int argc, char** argv) {
  if (argc > 2) {
    int const steps = std::atoi(argv[2]);
    if (argv[1] == std::string_view("single")) return train(parallel::SingleDevice{.threads = 1}, steps);
    return train(parallel::DistributedDataParallel{comm::SelfCommunicator{}, std::size_t{4} << 20, 1}, steps);
  }
  auto const single = of_a_step("single"), distributed = of_a_step("ddp");
  if (!single || !distributed) {
    std::puts("skipped: layer_cost: valgrind did not count (Debian: valgrind)");
    return 0;
  }
  auto const ratio = *single / *distributed;
  char how[64];
  std::snprintf(how, sizeof how, "counted by callgrind: %+.4f %%", 100 * (*distributed / *single - 1));
  Ratios("parallel/layer_cost").report("ddp, 1 rank, instructions of a step", "single", {ratio, ratio, ratio}, how);
}
