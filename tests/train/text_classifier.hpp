// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>

#include "texts.hpp"

namespace lockstep_test {

/// The text classifier of several tests: one type for all of them, which is compiled once.
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
  lockstep::nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return lockstep::nn::cross_entropy(context, predict(context, batch), batch[&Text::label]);
  }

 private:
  lockstep::nn::FusedEmbedding embedding_;
  lockstep::nn::TransformerEncoder encoder_;
  lockstep::nn::Linear head_;
};

}  // namespace lockstep_test
