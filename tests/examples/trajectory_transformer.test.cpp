// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/nn/initialize.hpp>

#include "../examples/trajectory_transformer/model.hpp"
#include "examples/learned_by_heart.hpp"

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
auto batch_of_7(Collate collate) {
  auto batches = lockstep_test::in_order(trajectories(7), 7, collate);
  batches.start({0, 1, 1}, 0, 0, 1);
  return batches;
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
  auto batches = batch_of_7(collate);
  auto const held = batches.next();
  return nn::check_gradients(start.model, start.layout, start.values, held.batches()[0], {.max_per_parameter = 24});
}

template <class Collate>
double loss(Collate collate) {
  Start start;
  auto batches = batch_of_7(collate);
  auto const held = batches.next();
  ThreadPool pool(1);
  nn::Context<double, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.bind(start.values.data(), nullptr, start.layout.entries().size());
  context.begin_micro_batch(nn::Mode::evaluation, 1);
  return nn::loss_of(start.model, context, held.batches()[0]).mean();
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
  lockstep_test::check_learned_by_heart(TrajectoryTransformer{small}, trajectories(16),
                                        data::RaggedCollate{.segment_plans = data::SegmentPlans::build}, 40);
}
