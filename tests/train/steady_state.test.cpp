// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "malloc_count.hpp"
#include "text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// Number of heap allocations up to each step.
struct Counts : train::Observer {
  std::vector<long> after_step;
  Counts() { after_step.reserve(1000); }
  void step(train::StepReport const&) override { after_step.push_back(lockstep_test::mallocs); }
};

/// Allocations in the fourth epoch of five: the first three have had the largest batch, and another rank may have
/// finished the last.
template <class Policy>
long requests(Policy policy, int accumulation = 1, double clip_norm = 0, train::Trace* trace = nullptr) {
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 3},
                          data::PadCollate{},
                          {.batch_size = 4, .workers = 1}};
  Trainer trainer{TextClassifier({.words = 50, .longest = 24}), optim::AdamW{}, std::move(policy)};
  Counts counts;
  trainer.fit(
      loader, train::NoEvaluation{},
      {.epochs = 5, .accumulation = accumulation, .clip_norm = clip_norm, .observers = {&counts}, .trace = trace});
  REQUIRE(counts.after_step.size() >= 10);
  auto const epoch = counts.after_step.size() / 5;
  return counts.after_step[4 * epoch - 1] - counts.after_step[3 * epoch - 1];
}

}  // namespace

TEST_CASE("the counter counts" * doctest::skip(!lockstep_test::counts_mallocs)) {
  auto const before = lockstep_test::mallocs.load();
  auto const owned = std::make_unique<std::vector<int>>(10);
  void* volatile const aligned = std::aligned_alloc(64, 64);  // clang removes unobservable allocations
  CHECK(lockstep_test::mallocs - before == 3);
  std::free(aligned);
}

// Sanitizers have their own counters: with them this only trains.
TEST_CASE("a training step does not allocate after the largest batch") {
  CHECK(requests(parallel::SingleDevice{.threads = 1}) == 0);
  CHECK(requests(parallel::SingleDevice{.threads = 2}) == 0);
  CHECK(requests(parallel::SingleDevice{.threads = 1}, 3, 0.1) == 0);
  CHECK(requests(parallel::DataParallel{.devices = 2, .threads = 1}) == 0);
  CHECK(requests(parallel::DistributedDataParallel{comm::SelfCommunicator{}, 1024, 1}) == 0);
  CHECK(requests(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}) == 0);
  CHECK(requests(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}, 3, 0.1) == 0);
}

TEST_CASE("a recorded step does not allocate either" * doctest::skip(!lockstep_test::counts_mallocs)) {
  train::Trace trace({.warm_up = 0, .steps = 1000});
  CHECK(requests(parallel::SingleDevice{.threads = 1}, 1, 0, &trace) == 0);
  CHECK(trace.steps() == 80);
  CHECK(requests(parallel::DistributedDataParallel{comm::SelfCommunicator{}, 1024, 1}, 1, 0, &trace) == 0);
}

TEST_CASE("nor does a step between ranks" * doctest::skip(!lockstep_test::counts_mallocs)) {
  for (bool const shard_optimizer : {false, true}) {
    auto const wire = shard_optimizer ? parallel::WireFormat::bfloat16 : parallel::WireFormat::float32;
    std::vector<long> counted(2, -1);
    launch::run({.threads = 2}, [&](launch::World& world) {
      counted[static_cast<std::size_t>(world.rank)] =
          requests(parallel::DistributedDataParallel{comm::connect(world), 1024, 1, parallel::BufferPolicy::first,
                                                     shard_optimizer, wire},
                   1, shard_optimizer ? 0.1 : 0);
      return 0;
    });
    CHECK(counted == std::vector<long>{0, 0});
  }
}
