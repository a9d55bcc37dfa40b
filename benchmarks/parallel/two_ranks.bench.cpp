// SPDX-License-Identifier: Apache-2.0
// Two ranks on two cores, against three peers: the machine's ceiling (the two processes each training alone), one such
// process alone on the machine, and two processes under PyTorch's DistributedDataParallel over Gloo. With a model of
// usual size, and with one whose steps are too short to hide communication. Also two ranks with a sharded optimizer
// state against two without, and two that send gradients as bfloat16 against two that send float32. Ragged texts,
// against PyTorch alone: padded to the longest, as in typical code, and packed, with a loop over their attention.
#include <cstdio>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include <answer.hpp>
#include <python_peer.hpp>
#include <suite.hpp>
#include <train/classifier.hpp>

using namespace lockstep_bench;

namespace {

struct Case {
  std::string name;
  Sizes sizes;
};
Case const cases[] = {
    {"width:128/padded", {}},
    {"width:32/padded", {.vocabulary = 2000, .width = 32, .layers = 1, .feed_forward = 64, .length = 32}},
    {"width:128/ragged", {.rows = Rows::unequal}},
};

/// use(a batch of such texts, collated as in user programs)
template <class Use>
int on_batch(Sizes const& sizes, Use const& use) {
  return sizes.rows == Rows::full ? use(batch_of(sizes)) : use(batch_of<data::RaggedCollate>(sizes));
}

template <class Policy>
int train_here(Policy policy, Sizes const& sizes) {
  return on_batch(sizes, [&](auto batch) {
    Training training(policy, Classifier(sizes), std::move(batch));
    return answer_each([&](long count) {
      return Answer{seconds_of(count, [&] { training.step(); }),
                    static_cast<double>(count * sizes.batch * training.policy().shards())};
    });
  });
}

/// Rank 0 answers requests and sends the other rank the number of steps; 0 is the end.
int train_together(launch::World& world, Sizes const& sizes, bool shard_optimizer, parallel::WireFormat wire) {
  return on_batch(sizes, [&](auto batch) {
    Training training(parallel::DistributedDataParallel{comm::connect(world), std::size_t{4} << 20, 1,
                                                        parallel::BufferPolicy::first, shard_optimizer, wire},
                      Classifier(sizes), std::move(batch));
    auto const steps = [&](long count) {
      training.policy().communicator.broadcast(&count, sizeof count, 0);
      for (long i = 0; i < count; ++i) training.step();
      return count;
    };
    if (world.rank == 0) {
      answer_each([&](long count) {
        return Answer{seconds_of(1, [&] { steps(count); }), static_cast<double>(count * sizes.batch * world.size)};
      });
      steps(0);
      return 0;
    }
    while (steps(0) > 0) {
    }
    return 0;
  });
}

int train_as(std::string const& role, std::size_t which) {
  auto const& sizes = cases[which].sizes;
  if (role == "alone") return train_here(parallel::SingleDevice{.threads = 1}, sizes);
  if (role == "replicas") return train_here(parallel::DataParallel{.devices = 2, .threads = 1}, sizes);
  return launch::run({.nproc = 2,
                      .limits = {.warn_seconds = 3600, .stall_seconds = 3600},
                      .report = [](std::string const& what) { std::fprintf(stderr, "%s\n", what.c_str()); }},
                     [&](launch::World& world) {
                       auto const wire =
                           role == "rounded" ? parallel::WireFormat::bfloat16 : parallel::WireFormat::float32;
                       return train_together(world, sizes, role == "sharded", wire);
                     });
}
Role const trained("train", [](std::vector<std::string> const& arguments) {
  return train_as(arguments.at(0), std::stoul(arguments.at(1)));
});

/// Registers steps of all ranks together, in samples per second.
void add_ranks(std::string const& name, PeerCommand command) {
  add(name,
      [=](benchmark::State& state) {
        if (processor_numbers().size() < 2) return skip(state, "2 ranks need 2 processors, and this process may use 1");
        run_peer(state, command);
      })
      ->UseManualTime()
      ->Unit(benchmark::kMillisecond);
}

void add_case(std::size_t which) {
  auto const& [texts, sizes] = cases[which];
  auto const own = [which](std::string const& role, int processes = 1) {
    return own_role("train", {role, std::to_string(which)}, processes);
  };
  auto const name = "two_ranks/" + texts;
  add_ranks(name, own("together"));
  if (sizes.rows == Rows::full) {
    add_ranks(name + "/peer:roof", own("alone", 2));
    add_ranks(name + "/peer:one_rank", own("alone"));
    add_ranks(name + "/sharded_optimizer", own("sharded"));
    add_ranks(name + "/sharded_optimizer/peer:whole", own("together"));
    add_ranks(name + "/gradients_sent_as_bfloat16", own("rounded"));
    add_ranks(name + "/gradients_sent_as_bfloat16/peer:float32", own("together"));
    add_ranks(name + "/devices_of_one_process", own("replicas"));
    add_ranks(name + "/devices_of_one_process/peer:roof", own("alone", 2));
  }
  std::vector<std::string> flags;
  for (auto const& [flag, value] : {std::pair{"--vocabulary", sizes.vocabulary},
                                    {"--width", sizes.width},
                                    {"--layers", sizes.layers},
                                    {"--feed-forward", sizes.feed_forward},
                                    {"--length", sizes.length}})
    flags.insert(flags.end(), {flag, std::to_string(value)});
  if (sizes.rows == Rows::unequal) flags.emplace_back("--unequal");
  add_ranks(name + "/peer:pytorch_ddp", python_peer("text_classification_ddp.py", flags));
  if (sizes.rows == Rows::full) return;
  flags.emplace_back("--packed");
  add_ranks(name + "/peer:pytorch_ddp_packed", python_peer("text_classification_ddp.py", flags));
}

}  // namespace

void register_benchmarks() {
  for (std::size_t which = 0; which < std::size(cases); ++which) add_case(which);
}
