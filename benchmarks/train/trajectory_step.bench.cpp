// SPDX-License-Identifier: Apache-2.0
// Training steps of the trajectory transformer of the examples against PyTorch's eager mode: equal model, shapes,
// dropout and optimizer, both on one thread. Full: all trajectories have 20 steps. Ragged: 1 to 20, which PyTorch pads.
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/data/collate/ragged_collate.hpp>

#include "../examples/trajectory_transformer/model.hpp"
#include <sized.hpp>
#include <train/add_step.hpp>

using namespace lockstep_bench;
using trajectory_transformer::Window;

namespace {
constexpr Index batch_size = sized(64, 8);
enum class Lengths { full, unequal };

auto trajectories(trajectory_transformer::Sizes const& sizes, Lengths lengths) {
  std::vector<Window> all;
  for (Index i = 0; i < batch_size; ++i) {
    Window one;
    for (Index t = 0; t < (lengths == Lengths::full ? sizes.steps : 1 + 7 * i % sizes.steps); ++t) {
      auto const action = (3 * i + 2 * t) % sizes.actions;
      one.returns.push_back(static_cast<float>(i % 4) / 4);
      one.actions.push_back(static_cast<std::int32_t>(action));
      one.targets.push_back(action);
      for (Index k = 1; k <= sizes.state_width; ++k)
        one.states.push_back(static_cast<float>(
            std::sin(1 + static_cast<double>(action) * static_cast<double>(k) + 0.1 * static_cast<double>(i))));
    }
    all.push_back(one);
  }
  return one_batch(std::move(all), data::RaggedCollate{.segment_plans = data::SegmentPlans::build});
}
}  // namespace

void register_benchmarks() {
  for (auto const lengths : {Lengths::full, Lengths::unequal})
    for (double const dropout : {0.1, 0.0}) {
      trajectory_transformer::Sizes const sizes{.context = 0, .dropout = dropout};
      auto const name = std::string("trajectory_step/") + (lengths == Lengths::full ? "full" : "ragged") +
                        (dropout > 0 ? "" : "/no_dropout");
      std::vector<std::string> arguments{"--dropout", std::to_string(dropout)};
      if (lengths == Lengths::unequal) arguments.emplace_back("--unequal");
      add_step(
          name, [sizes] { return trajectory_transformer::TrajectoryTransformer(sizes); },
          [=] { return trajectories(sizes, lengths); });
      add_step_peer(name, "trajectory_transformer.py", arguments);
      if (lengths == Lengths::full || dropout == 0) continue;
      arguments.emplace_back("--loop");
      add_step_peer(name, "trajectory_transformer.py", arguments, "pytorch_loop");
    }
}
