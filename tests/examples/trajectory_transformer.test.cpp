// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/comm/connect.hpp>
#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/launch/run.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/distributed_data_parallel.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/train/trainer.hpp>

#include "../examples/trajectory_transformer/model.hpp"

using namespace lockstep;
using trajectory_transformer::Trajectory;
using trajectory_transformer::TrajectoryTransformer;

namespace {

trajectory_transformer::Sizes const small{
    .actions = 5, .steps = 6, .width = 16, .layers = 2, .heads = 2, .feed_forward = 24, .dropout = 0};

/// Trajectories of 1 to 6 steps whose actions follow from state and return; they differ in each of their steps.
std::vector<Trajectory> trajectories(int count) {
  std::vector<Trajectory> all;
  for (int i = 0; i < count; ++i) {
    Trajectory trajectory;
    for (int t = 0; t <= i % 6; ++t) {
      auto const action = (3 * i + 2 * t) % 5;
      trajectory.returns.push_back(static_cast<float>(i % 4) / 4);
      auto& state = trajectory.states.emplace_back();
      for (std::size_t k = 0; k < state.size(); ++k)
        state[k] = static_cast<float>(std::sin(1.0 + action * static_cast<double>(k + 1) + 0.1 * i));
      trajectory.actions.push_back(action);
    }
    all.push_back(trajectory);
  }
  return all;
}

template <class Collate>
auto loader(int count, Index batch_size, Collate collate) {
  return data::DataLoader{data::InMemoryDataset{trajectories(count)},
                          data::SequentialSampler{},
                          collate,
                          {.batch_size = batch_size, .workers = 0}};
}

struct Outcome {
  std::vector<float> values;
  train::RunRecord record;
};
template <class Policy>
Outcome overfit(Policy policy, Index batch_size) {
  Trainer trainer{TrajectoryTransformer{small}, optim::AdamW{.learning_rate = 1e-2}, std::move(policy), 1};
  auto batches = loader(16, batch_size, data::RaggedCollate{.segment_plans = data::SegmentPlans::build});
  Outcome out;
  out.record = trainer.fit(batches, {}, {.epochs = 40});
  out.values.assign(trainer.values().begin(), trainer.values().end());
  return out;
}

/// Its parameters, with embeddings of size one instead of 0.02: the norm divides by it.
struct Start {
  TrajectoryTransformer model{small};
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<double> values = std::vector<double>(static_cast<std::size_t>(layout.size()));

  Start() {
    nn::initialize(layout, 3, values.data());
    for (auto const& entry : layout.entries())
      if (entry.initializer.kind == nn::Initializer::Kind::normal)
        for (Index i = 0; i < entry.size; ++i) values[static_cast<std::size_t>(entry.offset + i)] *= 50;
  }
};

template <class Collate>
auto check(Collate collate) {
  Start start;
  auto batches = loader(7, 7, collate);
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  return nn::check_gradients(start.model, start.layout, start.values, held.batches()[0], {.most_per_parameter = 24});
}

template <class Collate>
double loss(Collate collate) {
  Start start;
  auto batches = loader(7, 7, collate);
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.bind(start.values.data(), nullptr, start.layout.entries().size());
  context.begin_micro_batch(nn::Mode::evaluation, 1);
  return start.model.forward(context, held.batches()[0]).mean();
}

}  // namespace

TEST_CASE("gradients, ragged and padded") {
  auto const ragged = check(data::RaggedCollate{}), padded = check(data::PadCollate{});
  CAPTURE(ragged.where);
  CAPTURE(padded.where);
  CHECK(ragged.ok());
  CHECK(padded.ok());
}

TEST_CASE("padding changes nothing") {
  // Sums over tokens and heads in another order: some thousand roundings of numbers around one.
  CHECK(std::abs(loss(data::RaggedCollate{}) - loss(data::PadCollate{.length = 6})) < 1e-12);
}

TEST_CASE("a few trajectories are learned by heart on one device, on two, and by two ranks, which agree bit for bit") {
  // Five actions at random have a loss of ln 5 = 1.6; below 0.1 hardly a step is in doubt.
  auto const single = overfit(parallel::SingleDevice{.threads = 1}, 16);
  CHECK(single.record.steps == 40);
  CHECK(single.record.train_loss < 0.1);

  auto const dp = overfit(parallel::DataParallel{.devices = 2, .threads = 1}, 8);
  CHECK(dp.record.train_loss < 0.1);

  std::vector<Outcome> ranks(2);
  launch::Options options;
  options.threads = 2;
  CHECK(launch::run(options, [&](launch::World& world) {
          ranks[static_cast<std::size_t>(world.rank)] =
              overfit(parallel::DistributedDataParallel{comm::connect(world), 1 << 12, 1}, 8);
          return 0;
        }) == 0);
  for (auto const& rank : ranks) CHECK(rank.values == dp.values);
}
