// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <vector>

#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>

#include <kernel/zipf.hpp>
#include <sized.hpp>
#include <train/training.hpp>

namespace lockstep_bench {

enum class Rows {
  full,     ///< every text has `length` tokens, so skipping padding has no effect
  unequal,  ///< from `length` / 8 to `length` tokens, evenly by their logarithm: a mean of 0.42 `length`
};

/// The text classifier of the examples with its sizes; peers/text_classification.py has equal ones.
struct Sizes {
  Index vocabulary = sized(20000, 2000), width = 128, layers = 2, heads = 4, feed_forward = 256;
  Index length = sized(128, 32), batch = sized(32, 8), classes = 4;
  double dropout = 0.1;
  Rows rows = Rows::full;

  [[nodiscard]] Index length_of(Index row) const {
    if (rows == Rows::full) return length;
    auto const part = std::fmod(static_cast<double>(row + 1) * 0.6180339887498949, 1.0);
    return static_cast<Index>(static_cast<double>(length) / 8 * std::pow(8, part));
  }
};

struct Text {
  std::vector<std::int32_t> tokens;
  int label;
};

class Classifier {
 public:
  explicit Classifier(Sizes const& s)
      : embedding_({.vocabulary = s.vocabulary, .length = s.length, .width = s.width, .dropout = s.dropout}),
        encoder_({.layers = s.layers,
                  .width = s.width,
                  .heads = s.heads,
                  .feed_forward = s.feed_forward,
                  .dropout = s.dropout}),
        head_(s.width, s.classes) {}

  void visit(auto&& each) {
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto x = encoder_.forward(context, embedding_.forward(context, batch[&Text::tokens], batch.positions()));
    return head_.forward(context, nn::mean_pool(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

inline std::vector<Text> texts_of(Sizes const& s) {
  auto const ids = zipf_ids(s.vocabulary, s.batch * s.length);
  std::vector<Text> texts;
  for (Index row = 0; row < s.batch; ++row) {
    auto const begin = ids.begin() + row * s.length;
    texts.push_back({{begin, begin + s.length_of(row)}, static_cast<int>(row % s.classes)});
  }
  return texts;
}
template <class Collate = data::PadCollate>
auto batch_of(Sizes const& s) {
  return one_batch(texts_of(s), Collate{});
}

}  // namespace lockstep_bench
