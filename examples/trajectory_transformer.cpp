// SPDX-License-Identifier: Apache-2.0
// Trains a transformer to act as well as it is told to. The trajectories are generated: in each state one action earns
// a point; some players know which, others guess, and what they still earn tells them apart.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <lockstep/app/run.hpp>
#include <lockstep/lockstep.hpp>

#include "generated.hpp"
#include "trajectory_transformer/model.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using trajectory_transformer::Trajectory;

namespace {

struct Options : app::Options {
  trajectory_transformer::Sizes sizes;
  Index samples = 2000;
  app::Precision precision = app::Precision::fp32;

  void flags(app::Command& command) {
    transformer_flags::add(command, sizes);
    command.add("--actions", sizes.actions, 2, 10000, "Actions to choose from");
    command.add("--max-length", sizes.steps, 1, 8192, "Steps of the longest trajectory");
    command.add("--samples", samples, 1, 10000000,
                "Trajectories to generate for training; a tenth more for evaluation");
  }
};

class Players {
 public:
  explicit Players(Options const& options)
      : actions_(options.sizes.actions), steps_(options.sizes.steps), seed_(options.seed) {}

  Trajectory operator()(std::uint64_t number) const {
    Philox const random(mix(seed_, number));
    std::uint64_t draws = 0;
    auto const below = [&](Index n) {
      return std::min(n - 1, static_cast<Index>(uniform(random(0, ++draws)[0]) * static_cast<float>(n)));
    };
    bool const knows = below(2) == 1;
    Trajectory out;
    for (auto left = 1 + below(steps_); left > 0; --left) {
      auto const right = below(actions_), action = knows ? right : below(actions_);
      out.actions.push_back(static_cast<std::int32_t>(action));
      out.returns.push_back(action == right ? 1.0F : 0.0F);
      auto& state = out.states.emplace_back();
      for (std::size_t k = 0; k < state.size(); ++k)
        state[k] =
            std::sin(static_cast<float>(right + 1) * static_cast<float>(k + 1)) + 0.2F * uniform(random(1, ++draws)[0]);
    }
    for (std::size_t t = out.returns.size() - 1; t > 0; --t) out.returns[t - 1] += out.returns[t];  // what is to come
    for (auto& earned : out.returns) earned /= static_cast<float>(steps_);
    return out;
  }

 private:
  Index actions_, steps_;
  std::uint64_t seed_;
};

void check(Options const& options) {
  transformer_flags::check(options.sizes);
  generated::check(options);
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  return generated::train(training, Players{options}, data::RaggedCollate{.segment_plans = data::SegmentPlans::build},
                          trajectory_transformer::TrajectoryTransformer{options.sizes},
                          train::Accuracy{&Trajectory::actions});
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
