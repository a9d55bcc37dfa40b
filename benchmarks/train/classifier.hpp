// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include <lockstep/data/data_loader.hpp>
#include <lockstep/data/in_memory_dataset.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/data/ragged_collate.hpp>
#include <lockstep/data/sequential_sampler.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/initialize.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/pooling.hpp>
#include <lockstep/nn/transformer_encoder.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica.hpp>

#include <kernel/zipf.hpp>

namespace lockstep_bench {

using namespace lockstep;

enum class Rows {
  full,     ///< every text has `length` tokens, so that nobody gains by leaving padding out
  unequal,  ///< from `length` / 8 to `length` tokens, evenly by their logarithm: a mean of 0.42 `length`
};

/// The text classifier of the examples and its sizes; peers/text_classification.py has the same.
struct Sizes {
  Index vocabulary = 20000, width = 128, layers = 2, heads = 4, feed_forward = 256, length = 128, batch = 32,
        classes = 4;
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
  nn::Loss<typename Context::Space> forward(Context& context, auto const& batch) const {
    auto x = encoder_.forward(context, embedding_.forward(context, batch[&Text::tokens], batch.positions()));
    return nn::cross_entropy(context, head_.forward(context, nn::mean_pool(context, x)), batch[&Text::label]);
  }

 private:
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

/// One batch.
template <class Collate>
auto batch_of(Sizes const& s) {
  auto const ids = zipf_ids(s.vocabulary, s.batch * s.length);
  std::vector<Text> texts;
  for (Index row = 0; row < s.batch; ++row) {
    auto const begin = ids.begin() + row * s.length;
    texts.push_back({{begin, begin + s.length_of(row)}, static_cast<int>(row % s.classes)});
  }
  return data::DataLoader{data::InMemoryDataset{std::move(texts)},
                          data::SequentialSampler{},
                          Collate{},
                          {.batch_size = s.batch, .workers = 0}};
}

/// The classifier under a policy, and a batch to train it on again and again.
template <class Policy, class Collate = data::PadCollate, class Model = Classifier>
class Training {
 public:
  explicit Training(Policy policy, Sizes const& sizes = {})
      : policy_(std::move(policy)),
        model_(Classifier(sizes)),
        layout_(nn::ParameterLayout::of(model_)),
        session_(policy_, model_, layout_, initial_values()),
        loader_(batch_of<Collate>(sizes)),
        held_(first_batch()) {}
  // The session refers to the rest.
  Training(Training const&) = delete;
  Training& operator=(Training const&) = delete;

  [[nodiscard]] Policy& policy() noexcept { return policy_; }
  /// What the first device holds beyond parameters, their gradients and AdamW's two moments.
  [[nodiscard]] double activation_bytes() const {
    return static_cast<double>(session_.report().peak_bytes_per_device.at(0)) -
           4 * static_cast<double>(layout_.size()) * sizeof(float);
  }

  void step() {
    ++steps_;
    session_.micro_step(held_.batches(), {.key = static_cast<std::uint64_t>(steps_)});
    session_.update(optim::AdamW{.learning_rate = 3e-4}, {.step = steps_, .learning_rate = 3e-4});
  }

 private:
  using Loader = decltype(batch_of<Collate>(Sizes{}));

  std::vector<float> initial_values() const {
    std::vector<float> values(static_cast<std::size_t>(layout_.size()));
    nn::initialize(layout_, 1, values.data());
    return values;
  }
  typename Loader::Held first_batch() {
    loader_.start({}, 0, 0, 1);
    return loader_.next();
  }

  Policy policy_;
  Model model_;
  nn::ParameterLayout layout_;
  typename Policy::template Session<Model, optim::AdamW> session_;
  Loader loader_;
  typename Loader::Held held_;
  Index steps_ = 0;
};

}  // namespace lockstep_bench
