// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/attention/relative_position_bias.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/encode_once.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/transformer/gated_feed_forward.hpp>
#include <lockstep/nn/transformer/pre_norm.hpp>

/// Encoder-decoder like T5 1.1 that translates sign language into text.
namespace pose_to_text {
namespace nn = lockstep::nn;
using lockstep::Index;

constexpr Index channels = 3;  // per joint: x, y and confidence

/// Sequence of poses and its text.
struct Clip {
  std::vector<float> numbers;              // [frames, joints, channels]
  std::vector<std::uint8_t> frames;        // one element per frame: the number of joints is known at run time
  std::vector<std::int32_t> tokens, next;  // input of the decoder, and its targets
};

struct Sizes {
  Index coordinates = 133 * channels;  // numbers per frame
  Index vocabulary = 8000, width = 256, layers = 4, heads = 8, feed_forward = 1024;
  double dropout = 0.1, label_smoothing = 0;
};

using Attention = nn::PreNorm<nn::RMSNorm, nn::MultiHeadAttention>;

inline Attention attention(Sizes const& s, bool causal) {
  nn::MultiHeadAttention::Options const options{
      .width = s.width, .heads = s.heads, .dropout = s.dropout, .causal = causal, .bias = nn::Bias::none};
  return {nn::RMSNorm(s.width), nn::MultiHeadAttention(options), s.dropout};
}

/// Layers that share a relative position bias, followed by a norm. The decoder's layers also attend to the encoder's
/// output.
class Stack {
 public:
  Stack(Sizes const& s, bool decodes)
      : bias_({.heads = s.heads, .causal = decodes}), norm_(s.width), dropout_(s.dropout) {
    for (Index i = 0; i < s.layers; ++i) {
      attention_.push_back(attention(s, decodes));
      if (decodes) memory_.push_back(attention(s, false));
      nn::GatedFeedForward const gated({s.width, s.feed_forward, s.dropout, nn::Bias::none});
      feed_forward_.push_back({nn::RMSNorm(s.width), gated, s.dropout});
    }
  }
  void visit(auto&& each) {
    each("bias", bias_);
    for (std::size_t i = 0; i < attention_.size(); ++i) {
      each(std::to_string(i) + ".attention", attention_[i]);
      if (!memory_.empty()) each(std::to_string(i) + ".memory", memory_[i]);
      each(std::to_string(i) + ".feed_forward", feed_forward_[i]);
    }
    each("norm", norm_);
  }
  auto forward(auto& context, auto x, auto const&... memory) const {
    auto const bias = bias_.forward(context, x);
    for (std::size_t i = 0; i < attention_.size(); ++i) {
      x = attention_[i].forward(context, x, bias);
      if constexpr (sizeof...(memory) > 0) x = memory_[i].forward(context, x, memory...);
      x = feed_forward_[i].forward(context, x);
    }
    return dropout_.forward(context, norm_.forward(context, x));
  }

 private:
  nn::RelativePositionBias bias_;
  std::vector<Attention> attention_, memory_;
  std::vector<nn::PreNorm<nn::RMSNorm, nn::GatedFeedForward>> feed_forward_;
  nn::RMSNorm norm_;
  nn::Dropout dropout_;
};

class PoseToText {
 public:
  explicit PoseToText(Sizes const& s = {})
      : coordinates_(s.coordinates),
        label_smoothing_(s.label_smoothing),
        frames_(s.coordinates, s.width),
        encoder_(s, false),
        tokens_({.vocabulary = s.vocabulary, .width = s.width, .dropout = s.dropout}),
        decoder_(s, true),
        head_(s.width, s.vocabulary, nn::Bias::none),
        dropout_(s.dropout) {}

  void visit(auto&& each) {
    each("frames", frames_);
    each("encoder", encoder_);
    each("tokens", tokens_);
    each("decoder", decoder_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {  // logits of each next token
    auto const seen = nn::encode_once(context, [&] {
      auto const layout = nn::layout_of<typename Context::Space>(batch[&Clip::frames], batch.positions());
      auto const frames = nn::sequence_of(context, batch[&Clip::numbers], layout, coordinates_);
      return encoder_.forward(context, dropout_.forward(context, frames_.forward(context, frames)));
    });
    auto const read = tokens_.forward(context, batch[&Clip::tokens], batch.positions());
    return head_.forward(context, decoder_.forward(context, read, seen));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Clip::next], {.label_smoothing = label_smoothing_});
  }

 private:
  Index coordinates_;
  double label_smoothing_;
  nn::Linear frames_;
  Stack encoder_;
  nn::FusedEmbedding tokens_;
  Stack decoder_;
  nn::Linear head_;
  nn::Dropout dropout_;
};

}  // namespace pose_to_text
