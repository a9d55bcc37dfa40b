// SPDX-License-Identifier: Apache-2.0
// Two ranks on two cores against the machine's own ceiling, the same two processes each training for itself, and
// against one such process that has the machine for itself.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include <lockstep/comm/connect.hpp>
#include <lockstep/launch/run.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/single_device.hpp>

#include <peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

/// Reads a number of steps per line and answers with the seconds that they took.
template <class Steps>
int obey(Steps const& steps) {
  std::puts("ready");
  std::fflush(stdout);
  for (int count = 0; std::scanf("%d", &count) == 1;) {
    auto const begin = seconds(Time::wall);
    steps(count);
    std::printf("%.9g\n", seconds(Time::wall) - begin);
    std::fflush(stdout);
  }
  return 0;
}

int train_alone() {
  Training training(parallel::SingleDevice{.threads = 1});
  return obey([&](int count) {
    while (count-- > 0) training.step();
  });
}

/// Rank 0 obeys, and tells the other how many steps to make; 0 is the end.
int train_together(launch::World& world) {
  Training training(parallel::DistributedDataParallel{comm::connect(world), std::size_t{4} << 20, 1});
  auto const steps = [&](int count) {
    training.policy().communicator.broadcast(&count, sizeof count, 0);
    for (int i = 0; i < count; ++i) training.step();
    return count;
  };
  if (world.rank == 0) {
    obey(steps);
    return steps(0);
  }
  while (steps(0) > 0) {
  }
  return 0;
}

/// Runs of this program that make as many steps at the same time as fit into a turn.
class Group {
 public:
  Group(std::string const& role, int members, int steps_at_once) : steps_at_once_(steps_at_once) {
    while (static_cast<int>(members_.size()) < members) {
      auto member = Peer::start({"/proc/self/exe", role});
      if (!member) throw std::runtime_error("two_ranks: cannot start itself as " + role);
      members_.push_back(std::move(*member));
    }
  }

  /// Steps per second, of all ranks together.
  double operator()(double duration) {
    auto const steps = std::max(1.0, std::floor(duration * estimate_));
    for (auto& member : members_) member.tell(steps);
    double rate = 0;
    for (auto& member : members_) rate += steps / member.answer();
    estimate_ = rate / static_cast<double>(members_.size());
    return rate * steps_at_once_;
  }

 private:
  std::vector<Peer> members_;
  int steps_at_once_;
  double estimate_ = 2;
};

}  // namespace

int main(int argc, char** argv) {
  std::string_view const role = argc > 1 ? argv[1] : "";
  if (role == "alone") return train_alone();
  if (role == "together")
    return launch::run({.nproc = 2,
                        .limits = {.warn_seconds = 3600, .stall_seconds = 3600},
                        .report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); }},
                       train_together);
  if (processors().size() < 2) {
    std::puts("skipped: two_ranks: there is one processor only");
    return 0;
  }
  Ratios ratios("parallel/two_ranks");
  Group together("together", 1, 2), apart("alone", 2, 1), one("alone", 1, 1);
  Blocks const blocks{.seconds = 1, .count = 21};
  std::string const name = "step text classification, d=128, padded, 2 ranks, processes, 1 thread each";
  ratios.compare(name, "roof", std::ref(together), std::ref(apart), blocks);
  ratios.compare(name, "one_rank", std::ref(together), std::ref(one), blocks);
}
