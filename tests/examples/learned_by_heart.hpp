// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

namespace lockstep_test {

/// Batches in the samples' order, with the caller's collate.
template <class Sample, class Collate>
auto in_order(std::vector<Sample> samples, lockstep::Index batch_size, Collate collate) {
  namespace data = lockstep::data;
  return data::DataLoader{data::InMemoryDataset{std::move(samples)},
                          data::SequentialSampler{},
                          collate,
                          {.batch_size = batch_size, .workers = 0}};
}

/// Trains `model` on `samples` until it has learned them: on one device, on two, and by two ranks. Parameters, buffers
/// and the result of `evaluate(trainer)` must be bit-identical. `known(result)` says whether it is as expected.
template <class Model, class Sample, class Collate, class Evaluate, class Known>
void check_learned_by_heart(Model const& model, std::vector<Sample> const& samples, Collate collate,
                            lockstep::Index epochs, Evaluate const& evaluate, Known const& known) {
  using namespace lockstep;
  struct Learned {
    std::vector<float> values, buffers;
    train::RunRecord record;
    decltype(evaluate(std::declval<Trainer<Model, optim::AdamW, parallel::SingleDevice>&>())) seen;
  };
  auto const size = static_cast<Index>(samples.size());
  auto const train = [&](auto policy, Index batch_size) {
    Trainer trainer{model, optim::AdamW{.learning_rate = 1e-2}, std::move(policy), 1};
    auto batches = in_order(samples, batch_size, collate);
    auto const record = trainer.fit(batches, {}, {.epochs = epochs});
    auto const seen = evaluate(trainer);  // gives every rank the first rank's buffers
    return Learned{{trainer.values().begin(), trainer.values().end()},
                   {trainer.buffers().begin(), trainer.buffers().end()},
                   record,
                   seen};
  };
  auto const check = [&](Learned const& outcome) {
    CHECK(outcome.record.steps == epochs);
    CHECK(outcome.record.train_loss < 0.1);
    CHECK(known(outcome.seen));
  };
  check(train(parallel::SingleDevice{.threads = 1}, size));
  auto const dp = train(parallel::DataParallel{.devices = 2, .threads = 1}, size / 2);
  check(dp);

  std::vector<Learned> ranks(2);
  launch::Options options;
  options.threads = 2;
  CHECK(launch::run(options, [&](launch::World& world) {
          ranks[static_cast<std::size_t>(world.rank)] =
              train(parallel::DistributedDataParallel{comm::connect(world), 1 << 12, 1}, size / 2);
          return 0;
        }) == 0);
  for (auto const& rank : ranks) {
    CHECK(rank.values == dp.values);
    CHECK(rank.buffers == dp.buffers);
    CHECK(rank.seen == dp.seen);
  }
}

/// Overload for a model without further checks.
template <class Model, class Sample, class Collate>
void check_learned_by_heart(Model const& model, std::vector<Sample> const& samples, Collate collate,
                            lockstep::Index epochs) {
  check_learned_by_heart(
      model, samples, collate, epochs, [](auto const&) { return 0; }, [](int) { return true; });
}

}  // namespace lockstep_test
