// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/uci_har_dataset.hpp>
#include <lockstep/nn/batch_norm.hpp>
#include <lockstep/nn/convolution.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/sequential.hpp>
#include <lockstep/nn/space_pooling.hpp>

/// A convolutional network that tells from a few seconds of motion what its bearer is doing: it looks for shapes of the
/// signals in ever longer stretches, wherever in the window they are.
namespace activity_classification {
namespace nn = lockstep::nn;
using lockstep::Index;
using lockstep::data::HarSample;

struct Sizes {
  Index width = 64;  // channels of the first convolution; the others have twice as many
};

/// Convolution, normalisation and rectifier.
inline auto stage(Index inputs, Index outputs, Index stride) {
  return nn::Sequential{
      nn::Named{"convolution",
                nn::Conv1d(inputs, outputs, {.kernel = 5, .stride = stride, .padding = 2, .bias = nn::Bias::none})},
      nn::Named{"norm", nn::BatchNorm(outputs, {.activation = nn::Activation::relu})}};
}

/// 127,174 parameters as it stands.
class ActivityClassifier {
 public:
  explicit ActivityClassifier(Sizes const& sizes = {})
      : first_(stage(signals, sizes.width, 1)),
        second_(stage(sizes.width, 2 * sizes.width, 2)),
        third_(stage(2 * sizes.width, 2 * sizes.width, 2)),
        head_(2 * sizes.width, activities) {}

  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
    each("third", third_);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto x = first_.forward(context, context.input(batch[&HarSample::signals].values));  // [rows, 128, 9]
    x = third_.forward(context, second_.forward(context, x));
    return head_.forward(context, nn::global_average_pool(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&HarSample::label]);
  }

 private:
  static constexpr Index signals = 9, activities = 6;

  decltype(stage(1, 1, 1)) first_, second_, third_;
  nn::Linear head_;
};

}  // namespace activity_classification
