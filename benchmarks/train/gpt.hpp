// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/pre_norm.hpp>

namespace lockstep_bench {
using namespace lockstep;

/// Sizes of the model, and of a batch.
struct GptSizes {
  Index vocabulary, length, batch, layers, heads, width;
};
/// Tokens and their successors.
struct Passage {
  std::vector<std::int32_t> tokens, next;
};

/// The feed-forward part of GPT-2.
class Mlp {
 public:
  explicit Mlp(Index width) : wide_{width, 4 * width}, narrow_{4 * width, width} {}
  void visit(auto&& each) {
    each("wide", wide_);
    each("narrow", narrow_);
  }
  auto forward(auto& context, auto const& x) const {
    return narrow_.forward(context, nn::gelu_tanh(context, wide_.forward(context, x)));
  }

 private:
  nn::Linear wide_, narrow_;
};

/// GPT-2's architecture without dropout.
class Gpt {
 public:
  explicit Gpt(GptSizes const& s)
      : head_{s.width, s.vocabulary, nn::Bias::none},
        embedding_{{.length = s.length, .width = s.width}},
        norm_{s.width} {
    head_.visit([](auto const&, auto& weight) { weight.initializer = nn::Initializer::normal(0.02); });
    for (Index i = 0; i < s.layers; ++i)
      layers_.push_back(
          {{nn::LayerNorm{s.width}, nn::MultiHeadAttention{{.width = s.width, .heads = s.heads, .causal = true}}},
           {nn::LayerNorm{s.width}, Mlp{s.width}}});
  }
  void visit(auto&& each) {
    each("head", head_);
    each("embedding", embedding_);
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      each("attention" + std::to_string(i), layers_[i].attention);
      each("mlp" + std::to_string(i), layers_[i].mlp);
    }
    each("norm", norm_);
  }
  auto predict(auto& context, auto const& batch) const {
    auto const words = nn::Embedding::of(head_.weight(), batch[&Passage::tokens]);
    auto x = embedding_.forward(context, words, batch.positions());
    for (auto const& layer : layers_) x = layer.mlp.forward(context, layer.attention.forward(context, x));
    return head_.forward(context, norm_.forward(context, nn::newest_token(context, x)));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Passage::next]);
  }

 private:
  struct Layer {
    nn::PreNorm<nn::LayerNorm, nn::MultiHeadAttention> attention;
    nn::PreNorm<nn::LayerNorm, Mlp> mlp;
  };
  nn::Linear head_;  // its weight is also the table of the tokens
  nn::FusedEmbedding embedding_;
  std::vector<Layer> layers_;
  nn::LayerNorm norm_;
};

}  // namespace lockstep_bench
