// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/embedding.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/segment_of.hpp>
#include <lockstep/nn/sequence_of.hpp>
#include <lockstep/nn/transformer_encoder.hpp>

/// A transformer that reads a trajectory as one sequence, return 0, state 0, action 0, return 1, and so on, and learns
/// which action follows a state when so much is still to be gained: Chen et al., Decision Transformer (2021).
namespace trajectory_transformer {
namespace nn = lockstep::nn;
using lockstep::Index;

inline constexpr std::size_t state_width = 17;

struct Trajectory {
  std::vector<float> returns;  // still to come, at each step
  std::vector<std::array<float, state_width>> states;
  std::vector<std::int32_t> actions;
};

struct Sizes {
  Index actions = 18, steps = 20;  // steps: of the longest trajectory
  Index width = 128, layers = 3, heads = 4, feed_forward = 512;
  double dropout = 0.1;
};

class TrajectoryTransformer {
 public:
  explicit TrajectoryTransformer(Sizes const& s = {})
      : return_(1, s.width),
        state_(static_cast<Index>(state_width), s.width),
        action_(s.actions, s.width),
        embedding_({.length = s.steps,
                    .width = s.width,
                    .dropout = s.dropout,
                    .types = 3,
                    .positions = nn::Counted::steps,
                    .norm = nn::Norm::layer}),
        encoder_({.layers = s.layers,
                  .width = s.width,
                  .heads = s.heads,
                  .feed_forward = s.feed_forward,
                  .dropout = s.dropout,
                  .causal = true}),
        head_(s.width, s.actions) {}

  void visit(auto&& each) {
    each("return", return_);
    each("state", state_);
    each("action", action_);
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const positions = batch.positions();
    auto const returns = nn::sequence_of(context, batch[&Trajectory::returns], positions);
    auto const states = nn::sequence_of(context, batch[&Trajectory::states], positions);
    auto const steps = nn::interleave(return_.forward(context, returns), state_.forward(context, states),
                                      action_.of(batch[&Trajectory::actions]));
    auto const x = encoder_.forward(context, embedding_.forward(context, steps, positions));
    return head_.forward(context, nn::segment_of(context, x, 1, states.layout));  // a state comes before its action
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Trajectory::actions]);
  }

 private:
  nn::Linear return_, state_;
  nn::Embedding action_;
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

}  // namespace trajectory_transformer
