// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>
#include <variant>
#include <vector>

#include <lockstep/data/source/uci_har_dataset.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/module/sequential.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>

/// Three networks that classify windows of motion, and one model with the network of --mode.
namespace activity_classification {
namespace nn = lockstep::nn;
using lockstep::Index;
using lockstep::data::HarSample;

inline constexpr Index signals = lockstep::data::UciHarDataset::signals,
                       activities = lockstep::data::UciHarDataset::classes;

enum class Mode { flatten, conv, transformer };

struct Sizes {
  Mode mode = Mode::conv;
  Index length = lockstep::data::UciHarDataset::length;  // steps of a window
  Index channels = 64;  // conv: outputs of the first convolution; the others have twice as many
  Index hidden = 256;   // flatten: width of the first hidden layer; the second has half of it
  Index width = 64, layers = 2, heads = 4, feed_forward = 128;  // transformer
  double dropout = 0.1;                                         // flatten and transformer
};

struct LossOptions {
  double label_smoothing = 0;
  std::vector<float> class_weights;  // empty: each class has weight 1
};

/// A multilayer perceptron over all numbers of a window: 328,838 parameters by default.
class Flattened {
 public:
  explicit Flattened(Sizes const& s)
      : first_(s.length * signals, s.hidden),
        second_(s.hidden, (s.hidden + 1) / 2),
        head_((s.hidden + 1) / 2, activities),
        dropout_(s.dropout) {}

  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
    each("head", head_);
  }
  template <class Context>
  nn::VariableOf<Context, 2> predict(Context& context, auto const& batch) const {
    auto const windows = context.input(batch[&HarSample::signals].values);  // [rows, length, signals]
    auto x = windows.reshape(lockstep::Extents<2>{windows.extent(0), first_.inputs()});
    for (auto const* layer : {&first_, &second_})
      x = dropout_.forward(context, layer->forward(context, x, nn::Activation::relu), batch.positions());
    return head_.forward(context, x);
  }

 private:
  nn::Linear first_, second_, head_;
  nn::Dropout dropout_;
};

/// Returns convolution, normalization and ReLU.
inline auto stage(Index inputs, Index outputs, Index stride) {
  return nn::Sequential{
      nn::Named{"convolution",
                nn::Conv1d(inputs, outputs, {.kernel = 5, .stride = stride, .padding = 2, .bias = nn::Bias::none})},
      nn::Named{"norm", nn::BatchNorm(outputs, {.activation = nn::Activation::relu})}};
}

/// Convolutional network, which finds patterns of the signals anywhere in the window: 127,174 parameters by default.
class Convolutional {
 public:
  explicit Convolutional(Sizes const& s)
      : first_(stage(signals, s.channels, 1)),
        second_(stage(s.channels, 2 * s.channels, 2)),
        third_(stage(2 * s.channels, 2 * s.channels, 2)),
        head_(2 * s.channels, activities) {}

  void visit(auto&& each) {
    each("first", first_);
    each("second", second_);
    each("third", third_);
    each("head", head_);
  }
  template <class Context>
  nn::VariableOf<Context, 2> predict(Context& context, auto const& batch) const {
    auto x = first_.forward(context, context.input(batch[&HarSample::signals].values));  // [rows, length, channels]
    x = third_.forward(context, second_.forward(context, x));
    return head_.forward(context, nn::global_average_pool(context, x));
  }

 private:
  decltype(stage(1, 1, 1)) first_, second_, third_;
  nn::Linear head_;
};

/// Transformer encoder over the steps of a window, with projection, position embedding and mean pooling: 76,166
/// parameters by default.
class Encoded {
 public:
  explicit Encoded(Sizes const& s)
      : input_(signals, s.width),
        embedding_({.length = s.length, .width = s.width, .dropout = s.dropout}),
        encoder_({.layers = s.layers,
                  .width = s.width,
                  .heads = s.heads,
                  .feed_forward = s.feed_forward,
                  .dropout = s.dropout}),
        head_(s.width, activities) {}

  void visit(auto&& each) {
    each("input", input_);
    each("embedding", embedding_);
    each("encoder", encoder_);
    each("head", head_);
  }
  template <class Context>
  nn::VariableOf<Context, 2> predict(Context& context, auto const& batch) const {
    auto const steps = nn::sequence_of(context, batch[&HarSample::signals], batch.positions());
    auto const x = embedding_.forward(context, input_.forward(context, steps), batch.positions());
    return head_.forward(context, nn::mean_pool(context, encoder_.forward(context, x)));
  }

 private:
  nn::Linear input_;
  nn::FusedEmbedding embedding_;
  nn::TransformerEncoder encoder_;
  nn::Linear head_;
};

/// Model with the network of one mode. One type for all modes compiles the trainer, which depends on the model's type,
/// once.
class ActivityClassifier {
 public:
  explicit ActivityClassifier(Sizes const& sizes = {}, LossOptions loss = {})
      : network_(make(sizes)), loss_(std::move(loss)) {}

  void visit(auto&& each) {
    std::visit([&](auto& network) { network.visit(each); }, network_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    return std::visit([&](auto const& network) { return network.predict(context, batch); }, network_);
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&HarSample::label],
                             {.class_weights = loss_.class_weights, .label_smoothing = loss_.label_smoothing});
  }

 private:
  using Network = std::variant<Flattened, Convolutional, Encoded>;

  static Network make(Sizes const& sizes) {
    if (sizes.mode == Mode::flatten) return Flattened(sizes);
    if (sizes.mode == Mode::transformer) return Encoded(sizes);
    return Convolutional(sizes);
  }

  Network network_;
  LossOptions loss_;
};

}  // namespace activity_classification
