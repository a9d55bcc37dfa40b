// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstdint>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/nn/autograd/recompute.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/contrastive/all_gather.hpp>
#include <lockstep/nn/contrastive/dot_products.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/elementwise_loss.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/l2_normalize.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "farthest.hpp"
#include "train/losses.hpp"

/// A model whose replicas exchange data within passes: statistics over all samples, and a loss over pairs of samples.
namespace meeting_model {
using namespace lockstep;

struct Point {
  std::array<float, 4> at;
  int label;
  std::vector<std::array<float, 4>> steps{};  ///< without some of the points
};

/// Shrinks a row's products with all rows towards zero.
struct Apart {
  static constexpr char const* name = "apart";
  template <class T>
  constexpr kernel::LossAt<T> operator()(T product) const {
    return {product * product / 2, product};
  }
};

enum class Kind {
  plain,
  apart,         ///< statistics are each replica's own
  recomputed,    ///< layers with an exchange are recomputed in backward
  gathering,     ///< rows are gathered before any other exchange
  of_sequences,  ///< sequences are padded to each replica's longest
  skipping,      ///< some batches skip a head, whose gradients would be sent before others' exchange; on the host
};

class Model {
 public:
  explicit Model(Kind kind = Kind::plain)
      : kind_(kind), norm_(6, options(kind != Kind::apart)), again_(nn::BatchNorm(6, options(true))) {}
  void visit(auto&& each) {
    each("lift", lift_), each("norm", norm_), each("again", again_), each("head", head_), each("other", other_);
  }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = lifted(context, batch);
    auto logits = head_.forward(context, x);
    if constexpr (Context::Space::host_accessible)
      if (kind_ == Kind::skipping && batch.rows() > 0 && batch.positions()(0) % 3 == 0)
        logits = nn::add(context, logits, other_.forward(context, x));
    auto const own = nn::l2_normalize(context, logits);
    auto const all = nn::all_gather(context, own);
    auto const products = nn::dot_products(context, own, all.rows);
    return nn::cross_entropy(context, logits, batch[&Point::label])
        .with_auxiliary(nn::elementwise_loss(context, Apart{}, products, 0.1));
  }

 private:
  static nn::BatchNormOptions options(bool synchronized) {
    return {.activation = nn::Activation::relu, .synchronized = synchronized};
  }
  template <class Context>
  nn::VariableOf<Context, 2> lifted(Context& context, auto const& batch) const {
    if (kind_ == Kind::of_sequences) {
      auto const steps = nn::sequence_of(context, batch[&Point::steps], batch.positions());
      return nn::mean_pool(context, norm_.forward(context, lift_.forward(context, steps)));
    }
    auto const x = lift_.forward(context, context.input(batch[&Point::at].values));
    if (kind_ == Kind::gathering) return nn::relu(context, x);
    return kind_ == Kind::recomputed ? again_.forward(context, x) : norm_.forward(context, x);
  }

  Kind kind_;
  nn::Linear lift_{4, 6};
  nn::BatchNorm norm_;
  nn::Recompute<nn::BatchNorm> again_;
  nn::Linear head_{6, 3}, other_{6, 3};
};

inline std::vector<Point> points(int count) {
  std::vector<Point> all;
  for (int i = 0; i < count; ++i) {
    auto const draw = [&](std::uint64_t k) { return mix(static_cast<std::uint64_t>(i), k); };
    Point point{{}, static_cast<int>(draw(9) % 3)};
    for (std::size_t k = 0; k < 4; ++k)
      point.at[k] = static_cast<float>(draw(k) % 1000) / 500 - 1 + (k == 0 ? 0.3f : 0);
    point.at[static_cast<std::size_t>(point.label)] += 1;
    for (std::uint64_t step = 0, steps = draw(10) % 7; step < steps; ++step) {
      point.steps.push_back(point.at);
      for (std::size_t k = 0; k < 4; ++k)
        point.steps.back()[k] += static_cast<float>(draw(20 + 4 * step + k) % 1000) / 1000;
    }
    all.push_back(point);
  }
  return all;
}

struct Outcome {
  std::vector<float> values, buffers;
  std::vector<double> losses;
  Index rehearsed = 0;  // shapes whose passes were recorded before the first step
};

/// Micro-steps of 8 samples for all replicas together. The last of 43 has three, so with more than two replicas some
/// get no samples.
template <class Trained = Model, class Policy>
Outcome fit(Policy policy, Trained model = Trained(), double learning_rate = 0.05) {
  auto const batch = 8 / policy.all_shards();
  lockstep_test::Losses losses;
  FitOptions options{.epochs = 2};
  options.observers = {&losses};
  Trainer trainer{std::move(model), optim::SGD{.learning_rate = learning_rate}, std::move(policy), 5};
  data::DataLoader loader{data::InMemoryDataset{points(43)},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{.length = 6},
                          {.batch_size = batch, .workers = 0}};
  auto const record = trainer.fit(loader, options);
  return {{trainer.values().begin(), trainer.values().end()},
          {trainer.buffers().begin(), trainer.buffers().end()},
          losses.values,
          record.rehearsed_shapes};
}

using lockstep_test::farthest;

/// Twelve steps with a rate of 0.05 and gradients of about 1, which float rounds by less than 100 of its units each.
inline constexpr double rounding = 12 * 0.05 * 100 * 0x1p-24;

}  // namespace meeting_model
