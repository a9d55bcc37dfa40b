// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/embedding/segment_of.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/train/metrics/accuracy.hpp>

/// Transformer that reads a trajectory as one sequence, return 0, state 0, action 0, return 1, and so on. It learns
/// which action follows a state for a given return-to-go: Chen et al., Decision Transformer (2021).
namespace trajectory_transformer {
namespace nn = lockstep::nn;
using lockstep::Index;

/// Consecutive steps of an episode: the previous region, which is context, then the current region, whose actions are
/// predicted. Both vary in length between samples.
struct Window {
  std::vector<float> returns;               ///< [steps]: scaled return-to-go
  std::vector<float> states;                ///< [steps x state_width]
  std::vector<std::int32_t> actions;        ///< [steps]; empty for continuous actions
  std::vector<float> controls;              ///< [steps x control_width]: continuous actions; empty for discrete actions
  std::vector<std::int64_t> targets;        ///< [steps]: actions of the current region, -1 before it; empty for
                                            ///< continuous actions
  std::vector<std::array<bool, 1>> counts;  ///< [steps]: whether a step is in the current region; empty for discrete
                                            ///< actions
};

struct Sizes {
  Index actions = 18;  ///< number of discrete actions; 0: actions are continuous
  Index control_width = 0;
  Index state_width = 17;
  Index steps = 20, context = 10;  ///< length of the longest current and previous region
  Index width = 128, layers = 3, heads = 4, feed_forward = 512;
  double dropout = 0.1;

  /// Calls f(name, size) for each size that is saved with the parameters.
  static void each(auto&& sizes, auto const& f) {
    f("actions", sizes.actions);
    f("control_width", sizes.control_width);
    f("state_width", sizes.state_width);
    f("steps", sizes.steps);
    f("context", sizes.context);
    f("width", sizes.width);
    f("layers", sizes.layers);
    f("heads", sizes.heads);
    f("feed_forward", sizes.feed_forward);
  }
};

/// Targets with a mask, as nn::where_present takes them.
template <class Values, class Present>
struct Counted {
  Values values;
  Present present;
};
template <class Values, class Present>
Counted(Values, Present) -> Counted<Values, Present>;

class TrajectoryTransformer {
 public:
  explicit TrajectoryTransformer(Sizes const& s = {})
      : sizes_(s),
        return_(1, s.width),
        state_(s.state_width, s.width),
        action_(std::max<Index>(1, s.actions), s.width),
        control_(std::max<Index>(1, s.control_width), s.width),
        embedding_({.length = s.context + s.steps,
                    .width = s.width,
                    .dropout = s.dropout,
                    .types = 3,
                    .position_unit = nn::PositionUnit::steps,
                    .norm = nn::Norm::layer}),
        encoder_({.layers = s.layers,
                  .width = s.width,
                  .heads = s.heads,
                  .feed_forward = s.feed_forward,
                  .dropout = s.dropout,
                  .causal = true}),
        head_(s.width, s.actions > 0 ? s.actions : s.control_width) {}

  void visit(auto&& each) {
    each("return", return_);
    each("state", state_);
    if (discrete())
      each("action", action_);
    else
      each("control", control_);
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  /// Returns logits of actions, or continuous actions, for each step of both regions.
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const positions = batch.positions();
    auto const returns = nn::sequence_of(context, batch[&Window::returns], positions);
    auto const states = nn::sequence_of(context, batch[&Window::states], returns.layout, sizes_.state_width);
    auto const embed = [&](auto const& actions) {
      auto const steps = nn::interleave(return_.forward(context, returns), state_.forward(context, states), actions);
      return embedding_.forward(context, steps, positions);
    };
    auto const embedded = discrete()
                              ? embed(action_.of(batch[&Window::actions]))
                              : embed(control_.forward(context, nn::sequence_of(context, batch[&Window::controls],
                                                                                returns.layout, sizes_.control_width)));
    auto const x = encoder_.forward(context, embedded);
    return head_.forward(context, nn::segment_of(context, x, 1, returns.layout));  // the state precedes its action
  }
  /// Returns the loss of the current region.
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& predicted, auto const& batch) const {
    if (discrete()) return nn::cross_entropy(context, predicted, batch[&Window::targets], {.ignored = -1});
    auto const counts = batch[&Window::counts].values;
    Counted const targets{batch[&Window::controls].values, counts.reshape(lockstep::Extents<1>{counts.size()})};
    return nn::mean_squared_error(context, predicted.tokens, nn::where_present(targets));
  }

 private:
  [[nodiscard]] bool discrete() const noexcept { return sizes_.actions > 0; }

  Sizes sizes_;
  nn::Linear return_, state_;
  nn::Embedding action_;
  nn::Linear control_;
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

/// Metric of the current region's actions: the `accuracy` of discrete actions, or for continuous actions `r2`, the
/// explained share of their variance.
class ActionScore {
 public:
  explicit ActionScore(Sizes const& sizes) : discrete_(sizes.actions > 0) {}

  template <class Prediction, class Batch>
  void add(Prediction const& prediction, Batch const& batch) {
    if (discrete_) {
      lockstep::train::Accuracy accuracy{&Window::targets, -1};
      accuracy.add(prediction, batch);
      for (std::size_t i = 0; i < 2; ++i) totals_[i] += accuracy.totals()[i];
      return;
    }
    auto const& counts = batch[&Window::counts].values;
    auto const* target = batch[&Window::controls].values.data;
    auto const* predicted = prediction.tokens.value.data;
    auto const width = prediction.tokens.extent(1);
    for (Index step = 0; step < counts.size(); ++step, target += width, predicted += width) {
      if (!counts.data[step]) continue;
      for (Index k = 0; k < width; ++k) {
        double const wanted = target[k], error = static_cast<double>(static_cast<float>(predicted[k])) - wanted;
        totals_[0] += error * error;
        totals_[1] += 1;
        totals_[2] += wanted;
        totals_[3] += wanted * wanted;
      }
    }
  }
  [[nodiscard]] std::span<double> totals() noexcept { return totals_; }
  [[nodiscard]] double value() const noexcept {
    if (totals_[1] == 0) return 0;
    if (discrete_) return totals_[0] / totals_[1];
    double const variance = totals_[3] - totals_[2] * totals_[2] / totals_[1];
    return variance > 0 ? 1 - totals_[0] / variance : 0;
  }
  [[nodiscard]] char const* name() const noexcept { return discrete_ ? "accuracy" : "r2"; }

 private:
  bool discrete_;
  std::array<double, 4> totals_{};  // correct or squared error, counted, sum of targets, sum of their squares
};

}  // namespace trajectory_transformer
