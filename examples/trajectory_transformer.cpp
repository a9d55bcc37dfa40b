// SPDX-License-Identifier: Apache-2.0
// Trains a transformer to act as well as it is told to. The trajectories are generated: in each state one action earns
// a point; some players know which, others guess, and what they still earn tells them apart.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/lockstep.hpp>

#include "trajectory_transformer/model.hpp"

using namespace lockstep;
using trajectory_transformer::Trajectory;

namespace {

struct Options : app::Options {
  trajectory_transformer::Sizes sizes;
  Index samples = 2000;
  app::Precision precision = app::Precision::fp32;

  void flags(app::Command& command) {
    command.add("--d-model", sizes.width, 1, 8192, "Width of the model");
    command.add("--num-layers", sizes.layers, 1, 128, "Layers of the encoder");
    command.add("--num-heads", sizes.heads, 1, 128, "Attention heads of a layer");
    command.add("--feed-forward", sizes.feed_forward, 1, 65536, "Width of a layer's feed-forward part");
    command.add("--dropout", sizes.dropout, 0, 0.9, "Share of activations that training drops");
    command.add("--actions", sizes.actions, 2, 10000, "Actions to choose from");
    command.add("--max-length", sizes.steps, 1, 8192, "Steps of the longest trajectory");
    command.add("--samples", samples, 1, 10000000,
                "Trajectories to generate for training; a tenth more for evaluation");
  }
};

/// The trajectory of a number: the same on every rank.
class Players {
 public:
  Players(Options const& options, Index first, Index count)
      : actions_(options.sizes.actions),
        steps_(options.sizes.steps),
        seed_(options.seed),
        first_(first),
        count_(count) {}

  [[nodiscard]] Index size() const { return count_; }
  [[nodiscard]] Trajectory get(Index i) const {
    Philox const random(mix(seed_, static_cast<std::uint64_t>(first_ + i)));
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
  Index first_, count_;
};

void check(Options const& options) {
  if (!options.data.empty()) throw ConfigError("--data " + options.data + ": this example generates its trajectories");
  if (options.sizes.width % options.sizes.heads != 0)
    throw ConfigError("--d-model " + std::to_string(options.sizes.width) + " with --num-heads " +
                      std::to_string(options.sizes.heads) + ": heads share the width equally; choose a multiple");
  app::check_samples(options, options.samples);
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const loader = [&](Players const& players, auto sampler) {
    return data::DataLoader{players, sampler, data::RaggedCollate{.segment_plans = data::SegmentPlans::build},
                            training.loader_options()};
  };
  auto batches = loader({options, 0, options.samples}, data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader({options, options.samples, (options.samples + 9) / 10}, data::SequentialSampler{});
  training.fit(trajectory_transformer::TrajectoryTransformer{options.sizes},
               optim::AdamW{.weight_decay = options.weight_decay}, batches, train::Evaluation{evaluation});
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
