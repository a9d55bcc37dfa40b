// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include <lockstep/core/float16.hpp>
#include <lockstep/nn/attention/attention.hpp>
#include <lockstep/nn/attention/relative_position_bias.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/autograd/sequence_of.hpp>
#include <lockstep/nn/contrastive/dot_by_row.hpp>
#include <lockstep/nn/convolution/concatenate_channels.hpp>
#include <lockstep/nn/convolution/convolution.hpp>
#include <lockstep/nn/convolution/image_input.hpp>
#include <lockstep/nn/convolution/slice_channels.hpp>
#include <lockstep/nn/convolution/transposed_convolution.hpp>
#include <lockstep/nn/convolution/upsample.hpp>
#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/exp.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/sigmoid.hpp>
#include <lockstep/nn/elementwise/silu.hpp>
#include <lockstep/nn/elementwise/subtract.hpp>
#include <lockstep/nn/elementwise/tanh.hpp>
#include <lockstep/nn/embedding/embedding.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/embedding/segment_of.hpp>
#include <lockstep/nn/embedding/segments.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/ctc_loss.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
#include <lockstep/nn/normalization/group_norm.hpp>
#include <lockstep/nn/normalization/l2_normalize.hpp>
#include <lockstep/nn/normalization/rms_norm.hpp>
#include <lockstep/nn/normalization/softmax.hpp>
#include <lockstep/nn/pooling/pooling.hpp>
#include <lockstep/nn/pooling/space_pooling.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/random/standard_normal.hpp>
#include <lockstep/nn/recurrent/recurrent.hpp>
#include <lockstep/nn/transformer/gated_feed_forward.hpp>
#include <lockstep/nn/transformer/pre_norm.hpp>

#include "nn/sequence_model.hpp"

namespace lockstep_test {

/// Four sequences of ids with a number each, and an image for each of them.
class Mixed {
 public:
  static constexpr Index rows = 4, length = 6, vocabulary = 12;

  template <class T, class Space>
  struct Column {
    TensorView<T const, 2, Space> values;
    TensorView<std::int32_t const, 1, Space> lengths;
  };
  template <class Space>
  struct Batch {
    Column<std::int32_t, Space> tokens;
    Column<float, Space> numbers;
    TensorView<Index const, 1, Space> places;
    TensorView<std::uint8_t const, 2, Space> images;
    TensorView<float const, 2, Space> targets;
  };

  Mixed() {
    for (Index i = 0; i < rows * length; ++i) numbers_.push_back(static_cast<float>(i % 7) / 4 - 0.5f);
    for (Index i = 0; i < rows * 3; ++i) targets_.push_back(static_cast<float>(i % 5) - 2);
    for (Index i = 0; i < rows * 30; ++i) bytes_.push_back(static_cast<std::uint8_t>(i * 37 % 256));
  }

  /// The batch with its numbers at the addresses that `put(vector)` returns.
  template <class Space, class Put>
  [[nodiscard]] Batch<Space> in(Put const& put) const {
    TensorView<std::int32_t const, 1, Space> const lengths(put(tokens_.lengths), {rows});
    return {{{put(tokens_.ids), {rows, length}}, lengths},
            {{put(numbers_), {rows, length}}, lengths},
            {put(tokens_.positions), {rows}},
            {put(bytes_), {rows, 30}},
            {put(targets_), {rows, 3}}};
  }
  [[nodiscard]] Batch<HostSpace> on_host() const {
    return in<HostSpace>([](auto const& values) { return values.data(); });
  }

 private:
  TokenBatch tokens_{{6, 0, 1, 4}, length, static_cast<std::int32_t>(vocabulary)};
  std::vector<float> numbers_, targets_;
  std::vector<std::uint8_t> bytes_;
};

/// The layers that the golden files do not cover, and layers that combine others.
class Everything {
 public:
  void visit(auto&& each) {
    each("number", number), each("token", token), each("embedding", embedding), each("bias", bias);
    each("attention", attention), each("gated", gated);
    each("joined", joined), each("convolution", convolution), each("norm", norm), each("grouped", grouped),
        each("twice", twice), each("seen", seen);
    each("forwards", forwards), each("backwards", backwards);
    each("head", head);
  }
  template <class Context, class Space = typename Context::Space>
  nn::Loss<Space> forward(Context& context, Mixed::Batch<Space> const& batch, double factor = 1) const {
    auto const places = batch.places;
    auto const numbers = nn::sequence_of(context, batch.numbers, places);
    auto const [projected, cell] =
        forwards.forward_with_cell(context, number.forward(context, numbers, nn::Activation::relu));
    auto const x = embedding.forward(context, nn::interleave(projected, token.of(batch.tokens)), places);
    auto const z = attention.forward(context, x, bias.forward(context, x));
    auto const [sum, normalized] = joined.add_and_normalize(context, x, z, dropout);
    auto const y = nn::add(context, sum, gated.forward(context, normalized));
    auto const excited = nn::multiply(context, y, nn::sigmoid(context, nn::mean_pool(context, y)));
    auto const words =
        nn::segment_of(context, nn::subtract(context, y, nn::multiply(context, excited, x)), 1, numbers.layout);
    auto const first_tokens =
        nn::first_token(context, backwards.forward(context, words, nn::add(context, nn::mean_pool(context, y), cell)));
    auto const ends = nn::add(context, first_tokens, nn::last_token(context, y));
    auto const read = nn::add(context, nn::mean_pool(context, y), nn::relu(context, ends));

    auto const image = images.forward(context, batch.images);
    auto const maps = grouped.forward(context, norm.forward(context, convolution.forward(context, image)));
    auto const small =
        nn::AvgPool2d({.kernel = 1, .stride = 1}).forward(context, nn::MaxPool2d().forward(context, maps));
    auto const larger =
        nn::add(context, twice.forward(context, small), nn::Upsample2d{}.forward(context, nn::relu(context, small)));
    auto const means = nn::tanh(context, nn::global_average_pool(context, larger));
    auto const activated_image = nn::silu(context, seen.forward(context, means, nn::Activation::gelu));

    auto const both = dropout.forward(context, nn::gelu(context, nn::add(context, read, activated_image)), places);
    auto const direction = nn::l2_normalize(context, activated_image);
    auto const noise =
        nn::multiply(context, nn::softmax(context, direction), nn::standard_normal_like(context, both, places));
    auto const features = nn::concatenate_channels(context, nn::add(context, both, noise), nn::exp(context, direction));
    auto const half = features.extent(1) / 2;
    auto const sliced = nn::concatenate_channels(context, nn::slice_channels(context, features, half, half),
                                                 nn::slice_channels(context, features, 0, half),
                                                 nn::dot_by_row(context, direction, both));
    auto const loss = nn::mean_squared_error(context, head.forward(context, sliced), batch.targets, {.factor = factor});
    return loss.with_auxiliary(nn::ctc_loss(context, y, batch.tokens, {.factor = 0.1 * factor}));
  }

 private:
  static constexpr Index width = 16;

  nn::Linear number{1, width};
  nn::Embedding token{Mixed::vocabulary, width, nn::GradientForm::dense};
  nn::FusedEmbedding embedding{
      {.length = 12, .width = width, .dropout = 0.1, .types = 2, .scale = 2, .norm = nn::Norm::rms}};
  nn::RelativePositionBias bias{{.heads = 2, .buckets = 4, .farthest = 8}};
  nn::PreNorm<nn::RMSNorm, nn::MultiHeadAttention> attention{
      nn::RMSNorm(width), nn::MultiHeadAttention({.width = width, .heads = 2, .dropout = 0.1}), 0.1};
  nn::PreNorm<nn::RMSNorm, nn::GatedFeedForward> gated{nn::RMSNorm(width), nn::GatedFeedForward({width, 24, 0.1}), 0.1};
  nn::RMSNorm joined{width};
  nn::LSTM forwards{width, width};
  nn::GRU backwards{width, width, nn::Direction::backward};
  nn::ImageInput<2> images{{.extent = {6, 5}}};
  nn::Conv2d convolution{1, 4, {.padding = 1}};
  nn::BatchNorm norm{4, {.activation = nn::Activation::relu}};
  nn::GroupNorm grouped{2, 4};
  nn::ConvTranspose2d twice{4, 4};
  nn::Linear seen{4, width}, head{2 * width + 1, 3};
  nn::Dropout dropout{0.1};
};

/// Largest difference of two models' gradients of one parameter if one of them stores activations as Low, as a fraction
/// of their size. A gradient passes at most 65 rounded tensors, each number with an error of at most 2^-8 of itself,
/// for float16 2^-11, in independent directions: their errors add up to sqrt(65) times that.
template <class Low>
inline double const rounded_apart = std::sqrt(65.0) * (std::is_same_v<Low, lockstep::float16> ? 0x1p-11 : 0x1p-8);

/// Checks that `low` equals `exact` within rounding, and is not identical, for each parameter of the layout.
template <class Low, class Gradients>
void check_rounded(nn::ParameterLayout const& layout, Gradients const& exact, Gradients const& low) {
  for (auto const& entry : layout.entries()) {
    // Softmax and BatchNorm remove a constant: these gradients are zero within rounding in float, too.
    if (entry.name == "attention.key.bias" || entry.name == "convolution.bias") continue;
    double off = 0, all = 0;
    for (auto i = static_cast<std::size_t>(entry.offset); i < static_cast<std::size_t>(entry.offset + entry.size);
         ++i) {
      double const difference = low[i] - exact[i];
      off += difference * difference, all += static_cast<double>(exact[i]) * exact[i];
    }
    CAPTURE(entry.name);
    CHECK(all > 0);
    CHECK(off > 0);
    CHECK(std::sqrt(off / all) <= rounded_apart<Low>);
  }
}

}  // namespace lockstep_test
