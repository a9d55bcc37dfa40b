// SPDX-License-Identifier: Apache-2.0
// Two ranks on two cores, against three peers: the machine's ceiling (the two processes each training alone), one such
// process alone on the machine, and two processes under PyTorch's DistributedDataParallel over Gloo. With a model of
// usual size, and with one whose steps are too short to hide communication. Also two ranks with a sharded optimizer
// state against two without, and two that send gradients as bfloat16 against two that send float32. Ragged texts,
// against PyTorch alone: padded to the longest, as in typical code, and packed, with a loop over their attention.
#include <algorithm>
#include <cstdio>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <peer.hpp>
#include <python_peer.hpp>
#include <rate.hpp>
#include <ratios.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

struct Case {
  std::string name;
  Sizes sizes;
};
Case const cases[] = {
    {"d=128, padded", {}},
    {"d=32, padded", {.vocabulary = 2000, .width = 32, .layers = 1, .feed_forward = 64, .length = 32}},
    {"d=128, ragged", {.rows = Rows::unequal}},
};

/// Reads a number of steps per line and answers with their seconds.
template <class Steps>
int run_commands(Steps const& steps) {
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

/// use(a batch of such texts, collated as in user programs)
template <class Use>
int on_batch(Sizes const& sizes, Use const& use) {
  return sizes.rows == Rows::full ? use(batch_of(sizes)) : use(batch_of<data::RaggedCollate>(sizes));
}

template <class Policy>
int train_here(Policy policy, Sizes const& sizes) {
  return on_batch(sizes, [&](auto batch) {
    Training training(policy, Classifier(sizes), std::move(batch));
    return run_commands([&](int count) {
      while (count-- > 0) training.step();
    });
  });
}

/// Rank 0 reads requests and sends the other rank the number of steps; 0 is the end.
int train_together(launch::World& world, Sizes const& sizes, bool shard_optimizer, parallel::WireFormat wire) {
  return on_batch(sizes, [&](auto batch) {
    Training training(parallel::DistributedDataParallel{comm::connect(world), std::size_t{4} << 20, 1,
                                                        parallel::BufferPolicy::first, shard_optimizer, wire},
                      Classifier(sizes), std::move(batch));
    auto const steps = [&](int count) {
      training.policy().communicator.broadcast(&count, sizeof count, 0);
      for (int i = 0; i < count; ++i) training.step();
      return count;
    };
    if (world.rank == 0) {
      run_commands(steps);
      return steps(0);
    }
    while (steps(0) > 0) {
    }
    return 0;
  });
}

/// Concurrent runs of this program, each with as many steps as fit into a turn.
class Group {
 public:
  Group(std::string const& role, std::size_t which, int members, int steps_at_once) : steps_at_once_(steps_at_once) {
    while (static_cast<int>(members_.size()) < members) {
      auto member = Peer::start({"/proc/self/exe", role, std::to_string(which)});
      if (!member) throw std::runtime_error("two_ranks: cannot start itself as " + role);
      members_.push_back(std::move(*member));
    }
  }

  /// Steps per second, of all ranks together.
  double operator()(double duration) {
    auto const steps = std::max(1.0, std::floor(duration * estimate_));
    for (auto& member : members_) member.send(steps);
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

void compare(Ratios& ratios, std::size_t which) {
  auto const& [texts, sizes] = cases[which];
  auto const step = "step text classification, " + texts + ", ", name = step + "2 ranks, processes, 1 thread each";
  Blocks const blocks{.seconds = 1, .count = 21};
  Group together("together", which, 1, 2);
  std::vector<std::string> flags;
  for (auto const& [flag, value] : {std::pair{"--vocabulary", sizes.vocabulary},
                                    {"--width", sizes.width},
                                    {"--layers", sizes.layers},
                                    {"--feed-forward", sizes.feed_forward},
                                    {"--length", sizes.length}})
    flags.insert(flags.end(), {flag, std::to_string(value)});
  auto const compare_with = [&](std::string const& peer, std::vector<std::string> const& arguments) {
    if (auto other = python_peer("text_classification_ddp.py", arguments))
      ratios.compare(
          name, peer, [&](double duration) { return static_cast<double>(sizes.batch) * together(duration); },
          std::ref(*other), blocks);
  };
  if (sizes.rows == Rows::unequal) {
    flags.emplace_back("--unequal");
    compare_with("pytorch ddp", flags);
    flags.emplace_back("--packed");
    compare_with("pytorch ddp packed", flags);
    return;
  }
  {
    Group apart("alone", which, 2, 1), one("alone", which, 1, 1);
    ratios.compare(name, "roof", std::ref(together), std::ref(apart), blocks);
    ratios.compare(name, "one_rank", std::ref(together), std::ref(one), blocks);
    Group sharded("sharded", which, 1, 2);
    ratios.compare(name + ", sharded optimizer", "whole", std::ref(sharded), std::ref(together), blocks);
    Group rounded("rounded", which, 1, 2);
    ratios.compare(name + ", gradients sent as bfloat16", "float32", std::ref(rounded), std::ref(together), blocks);
    Group replicas("replicas", which, 1, 2);
    ratios.compare(step + "2 devices of one process, 1 thread each", "roof", std::ref(replicas), std::ref(apart),
                   blocks);
  }
  compare_with("pytorch ddp", flags);
}

}  // namespace

int main(int argc, char** argv) {
  std::string_view const role = argc > 2 ? argv[1] : "";
  auto const& sizes = cases[argc > 2 ? std::stoul(argv[2]) : 0].sizes;
  if (role == "alone") return train_here(parallel::SingleDevice{.threads = 1}, sizes);
  if (role == "replicas") return train_here(parallel::DataParallel{.devices = 2, .threads = 1}, sizes);
  if (role == "together" || role == "sharded" || role == "rounded")
    return launch::run({.nproc = 2,
                        .limits = {.warn_seconds = 3600, .stall_seconds = 3600},
                        .report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); }},
                       [&](launch::World& world) {
                         auto const wire =
                             role == "rounded" ? parallel::WireFormat::bfloat16 : parallel::WireFormat::float32;
                         return train_together(world, sizes, role == "sharded", wire);
                       });
  if (processor_numbers().size() < 2) {
    std::puts("skipped: two_ranks: there is one processor only");
    return 0;
  }
  Ratios ratios("parallel/two_ranks");
  for (std::size_t which = 0; which < std::size(cases); ++which) compare(ratios, which);
}
