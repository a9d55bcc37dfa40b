// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/convolution/image_input.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>

/// 3D convolutional network that classifies clips. Each stage except the last halves height and width. Each stage
/// except the first and the last halves the frames.
namespace video_classification {
namespace nn = lockstep::nn;
using lockstep::Index;

struct Clip {
  std::vector<std::uint8_t> pixels;  // [frames, height, width]
  std::int32_t label;
};

/// Sizes of the model. The defaults give 2,947,476 parameters.
struct Sizes {
  Index frames = 17, height = 256, width = 256;
  std::vector<Index> channels{16, 32, 64, 128, 256, 256};  // per stage
  std::vector<float> class_weights{1, 1, 1, 1};            // in the loss, one per class
  bool synchronized = false;                               // batch statistics over the clips of all devices
};

/// Returns the channels of the stages for a frame size. The first stage has 16, doubled up to 256 with each stage that
/// halves height and width. Stages halve until the shorter side has 8 pixels; one more stage follows.
inline std::vector<Index> channels_for(Index height, Index width) {
  std::vector<Index> channels;
  Index next = 16;
  for (Index side = std::min(height, width); channels.empty() || side > 8; side = (side + 1) / 2) {
    channels.push_back(next);
    next = std::min<Index>(256, 2 * next);
  }
  channels.push_back(next);
  return channels;
}

/// Convolution, normalization and ReLU.
class Stage {
 public:
  Stage(Index inputs, Index outputs, nn::PerAxis<3> stride, bool synchronized)
      : convolution_(inputs, outputs, {.kernel = 3, .stride = stride, .padding = 1, .bias = nn::Bias::none}),
        norm_(outputs, {.activation = nn::Activation::relu, .synchronized = synchronized}) {}

  void visit(auto&& each) {
    each("convolution", convolution_);
    each("norm", norm_);
  }
  template <class Context>
  auto forward(Context& context, nn::VariableOf<Context, 5> x) const {
    return norm_.forward(context, convolution_.forward(context, x));
  }

 private:
  nn::Conv3d convolution_;
  nn::BatchNorm norm_;
};

class VideoClassifier {
 public:
  explicit VideoClassifier(Sizes const& sizes = {})
      : input_({.extent = {sizes.frames, sizes.height, sizes.width}, .mean = {0.5}, .deviation = {0.25}}),
        head_(sizes.channels.back(), static_cast<Index>(sizes.class_weights.size())),
        class_weights_(sizes.class_weights) {
    auto const last = sizes.channels.size() - 1;
    for (std::size_t i = 0; i <= last; ++i)
      stages_.emplace_back(i == 0 ? input_.channels() : sizes.channels[i - 1], sizes.channels[i],
                           i == 0      ? nn::PerAxis<3>(1, 2, 2)
                           : i == last ? nn::PerAxis<3>(1)
                                       : nn::PerAxis<3>(2),
                           sizes.synchronized);
  }

  void visit(auto&& each) {
    for (std::size_t i = 0; i < stages_.size(); ++i) each("stages." + std::to_string(i), stages_[i]);
    each("head", head_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto x = input_.forward(context, batch[&Clip::pixels]);
    for (auto const& stage : stages_) x = stage.forward(context, x);
    return head_.forward(context, nn::global_average_pool(context, x));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Clip::label], {.class_weights = class_weights_});
  }

 private:
  nn::ImageInput<3> input_;
  std::vector<Stage> stages_;
  nn::Linear head_;
  std::vector<float> class_weights_;
};

}  // namespace video_classification
