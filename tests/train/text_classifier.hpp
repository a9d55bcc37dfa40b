// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/pooling.hpp>
#include <lockstep/nn/transformer_encoder.hpp>

namespace lockstep_test {

struct Text {
  std::vector<std::int32_t> tokens;
  int label;  // 0, 1 or 2
};

/// 64 texts of 1 to 24 tokens below 50. A text of 24 is in every batch of 8 consecutive ones, not in every shuffled
/// one.
inline std::vector<Text> uneven_texts() {
  std::vector<Text> all;
  for (int i = 0; i < 64; ++i) {
    Text text{{}, i % 3};
    for (int t = 0; t <= (i * 7) % 24; ++t) text.tokens.push_back(1 + (i * 11 + t * 5) % 49);
    all.push_back(std::move(text));
  }
  return all;
}

/// The text classifier that several tests train: one type for all of them, which the compiler sees once.
class TextClassifier {
 public:
  struct Options {
    lockstep::Index words, longest;
    lockstep::Index layers = 2;  // without, a bag of words
    lockstep::Index width = 16;
    double dropout = 0.1;
    lockstep::nn::GradientForm form = lockstep::nn::GradientForm::by_rows;
  };
  explicit TextClassifier(Options const& options)
      : embedding_({.vocabulary = options.words,
                    .length = options.longest,
                    .width = options.width,
                    .dropout = options.dropout,
                    .token_gradient = options.form}),
        encoder_({.layers = options.layers,
                  .width = options.width,
                  .heads = 2,
                  .feed_forward = 2 * options.width,
                  .dropout = options.dropout}),
        head_(options.width, 3) {}
  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Text::tokens], batch.positions());
    return head_.forward(context, lockstep::nn::mean_pool(context, encoder_.forward(context, x)));
  }
  template <class Context>
  lockstep::nn::Loss<typename Context::Space> forward(Context& context, auto const& batch) const {
    return lockstep::nn::cross_entropy(context, predict(context, batch), batch[&Text::label]);
  }

 private:
  lockstep::nn::FusedEmbedding embedding_;
  lockstep::nn::TransformerEncoder encoder_;
  lockstep::nn::Linear head_;
};

}  // namespace lockstep_test
