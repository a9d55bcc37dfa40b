// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/encode_once.hpp>

namespace lockstep_test {

constexpr std::int32_t begin_token = 1, end_token = 2;
constexpr lockstep::Index source_ids = 6, target_tokens = 4;

/// A sequence of source ids, and the decoder's input.
struct Pair {
  std::vector<std::int32_t> source, tokens;
};

/// A small encoder-decoder.
class TinyTranslator {
 public:
  void visit(auto&& each) {
    each("source", source_), each("tokens", tokens_), each("self", self_), each("memory", memory_), each("head", head_);
  }
  auto predict(auto& context, auto const& batch) const {
    namespace nn = lockstep::nn;
    auto const memory =
        nn::encode_once(context, [&] { return source_.forward(context, batch[&Pair::source], batch.positions()); });
    auto x = tokens_.forward(context, batch[&Pair::tokens], batch.positions());
    x = memory_.forward(context, self_.forward(context, x), memory);
    return head_.forward(context, x);
  }
  template <class Context>
  lockstep::nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return lockstep::nn::cross_entropy(context, logits, batch[&Pair::tokens]);
  }

 private:
  static constexpr lockstep::Index width = 8;
  lockstep::nn::FusedEmbedding source_{{.vocabulary = source_ids, .width = width}};
  lockstep::nn::FusedEmbedding tokens_{{.vocabulary = target_tokens, .length = 16, .width = width}};
  lockstep::nn::MultiHeadAttention self_{{.width = width, .heads = 2, .causal = true}};
  lockstep::nn::MultiHeadAttention memory_{{.width = width, .heads = 2}};
  lockstep::nn::Linear head_{width, target_tokens};
};

/// Parameters that make predictions differ between samples and between tokens.
inline std::vector<float> translator_parameters(lockstep::Index size) {
  std::vector<float> values(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 0.6f * std::sin(static_cast<float>(i * i % 1013));
  return values;
}

inline std::vector<Pair> pairs() {
  return {{{3, 1, 4}, {begin_token}}, {{1}, {begin_token}}, {{5, 2, 5, 3, 0}, {begin_token}},
          {{2, 2}, {begin_token}},    {{4}, {begin_token}}, {{0, 5, 1, 1}, {begin_token}}};
}

}  // namespace lockstep_test
