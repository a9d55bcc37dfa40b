// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/examination.hpp>

#include <atomic>
#include <stop_token>

#include <doctest/doctest.h>

#include <lockstep/comm/shared_memory/thread_communicator.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "train/line.hpp"

using namespace lockstep;

namespace {

/// Examines a model whose slope is 1 under a policy, and checks the results common to all policies.
template <class Policy>
app::Examination examined(Policy policy, Index samples = 24) {
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0}, std::move(policy)};
  auto loader = line::loader(samples, 4), held_out = line::loader(samples, 4);
  auto const before = trainer.values()[0];
  auto const found = app::Examination::make(trainer, loader, train::Evaluation{held_out}, {.epochs = 9});
  CHECK(trainer.values()[0] == before);
  CHECK(found.complete_steps.steps == 40);  // the steps are short
  CHECK(found.replayed.steps == 40);
  CHECK(found.complete_steps.evaluations.empty());
  CHECK(found.complete_steps.samples_per_second() > 0);
  CHECK(found.loader_samples_per_second > 0);
  CHECK(loader.options().batch_size == 4);
  return found;
}

}  // namespace

TEST_CASE("steps of one device, several devices and ranks are measured without changing the model") {
  for (auto const& found :
       {examined(parallel::SingleDevice{.threads = 1}), examined(parallel::DataParallel{.devices = 2, .threads = 1})}) {
    auto const& buckets = found.complete_steps.session.buckets;
    REQUIRE(buckets.size() == 1);
    CHECK(buckets[0].ready > found.complete_steps.pass_began);
    CHECK(buckets[0].start == 0);
  }
  std::atomic<int> costs = 0;
  launch::Options options;
  options.threads = 2;
  int const code = launch::run(options, [&](launch::World& world) {
    comm::ThreadCommunicator communicator(world);
    auto const cost = app::Examination::measure_all_reduce(communicator);
    costs += cost.latency_seconds + cost.seconds_per_byte > 0;
    examined(parallel::DistributedDataParallel{std::move(communicator)});
    return 0;
  });
  CHECK(code == 0);
  CHECK(costs == 2);
}

TEST_CASE("an epoch of one step is enough") { examined(parallel::SingleDevice{.threads = 1}, 3); }

TEST_CASE("the loader measured alone makes its batches") {
  struct Counted {
    Index* samples;  // batches that were made
    [[nodiscard]] Index size() const { return 24; }
    [[nodiscard]] line::Point get(Index) const { return ++*samples, line::Point{1, 2, 1}; }
  };
  Index samples = 0;
  data::DataLoader loader{
      Counted{&samples}, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = 4, .workers = 0}};
  auto held_out = line::loader(24, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0}, parallel::SingleDevice{.threads = 1}};
  auto const found = app::Examination::make(trainer, loader, train::Evaluation{held_out}, {});
  auto const before =
      3 + found.complete_steps.steps + loader.options().prefetch + 1;  // batches; the last ones are replayed
  CHECK(samples / 4 > before + 20);
}

TEST_CASE("a stop request takes effect after a step") {
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0}, parallel::SingleDevice{.threads = 1}};
  auto loader = line::loader(24, 4), held_out = line::loader(24, 4);
  std::stop_source stop;
  stop.request_stop();
  auto const found = app::Examination::make(trainer, loader, train::Evaluation{held_out}, {.stop = stop.get_token()});
  CHECK(found.stopped);
  CHECK(found.complete_steps.steps == 0);
}
