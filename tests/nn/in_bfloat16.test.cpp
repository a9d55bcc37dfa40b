// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/in_bfloat16.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/nn/add.hpp>
#include <lockstep/nn/attention.hpp>
#include <lockstep/nn/batch_norm.hpp>
#include <lockstep/nn/convolution.hpp>
#include <lockstep/nn/cross_entropy.hpp>
#include <lockstep/nn/dropout.hpp>
#include <lockstep/nn/embedding.hpp>
#include <lockstep/nn/fused_embedding.hpp>
#include <lockstep/nn/gated_feed_forward.hpp>
#include <lockstep/nn/gelu.hpp>
#include <lockstep/nn/image_input.hpp>
#include <lockstep/nn/linear.hpp>
#include <lockstep/nn/mean_squared_error.hpp>
#include <lockstep/nn/pooling.hpp>
#include <lockstep/nn/pre_norm.hpp>
#include <lockstep/nn/recompute.hpp>
#include <lockstep/nn/relative_position_bias.hpp>
#include <lockstep/nn/relu.hpp>
#include <lockstep/nn/rms_norm.hpp>
#include <lockstep/nn/segment_of.hpp>
#include <lockstep/nn/segments.hpp>
#include <lockstep/nn/sequence_of.hpp>
#include <lockstep/nn/space_pooling.hpp>
#include <lockstep/nn/transformer_encoder_layer.hpp>

#include "malloc_count.hpp"
#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

constexpr Index vocabulary = 12, length = 9, width = 16;

struct Classifier {
  nn::FusedEmbedding embedding{{.vocabulary = vocabulary,
                                .length = length,
                                .width = width,
                                .dropout = 0.1,
                                .token_gradient = nn::GradientForm::dense}};
  nn::TransformerEncoderLayer first{{.width = width, .heads = 2, .feed_forward = 32, .dropout = 0.1}};
  nn::Recompute<nn::TransformerEncoderLayer> second{
      nn::TransformerEncoderLayer{{.width = width, .heads = 4, .feed_forward = 32, .norm_first = true}}};
  nn::Linear head{width, 3};

  void visit(auto&& each) {
    each("embedding", embedding);
    each("first", first);
    each("second", second);
    each("head", head);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = embedding.forward(context, batch.tokens(), batch.places());
    auto const y = second.forward(context, first.forward(context, x));
    return nn::cross_entropy(context, head.forward(context, nn::mean_pool(context, y)), batch.classes());
  }
};
using Low = nn::InBfloat16<Classifier>;

/// Ids and a number beside each, and a picture for each row.
struct Mixed {
  TokenBatch tokens{{6, 0, 1, 4}, 6, static_cast<std::int32_t>(vocabulary)};
  std::vector<float> numbers, targets;
  std::vector<std::uint8_t> bytes;
  Mixed() {
    for (Index i = 0; i < 24; ++i) numbers.push_back(static_cast<float>(i % 7) / 4 - 0.5f);
    for (Index i = 0; i < 4 * 3; ++i) targets.push_back(static_cast<float>(i % 5) - 2);
    for (Index i = 0; i < 4 * 6 * 5; ++i) bytes.push_back(static_cast<std::uint8_t>(i * 37 % 256));
  }
};
struct Numbers {
  TensorView<float const, 2, HostSpace> values;
  TensorView<std::int32_t const, 1, HostSpace> lengths;
};

/// The layers that the golden files do not cover, and those that join others.
struct Everything {
  nn::Linear number{1, width};
  nn::Embedding token{vocabulary, width, nn::GradientForm::dense};
  nn::FusedEmbedding embedding{
      {.length = 12, .width = width, .dropout = 0.1, .types = 2, .scale = 2, .norm = nn::Norm::rms}};
  nn::RelativePositionBias bias{{.heads = 2, .buckets = 4, .farthest = 8}};
  nn::PreNorm<nn::RMSNorm, nn::MultiHeadAttention> attention{
      nn::RMSNorm(width), nn::MultiHeadAttention({.width = width, .heads = 2, .dropout = 0.1}), 0.1};
  nn::PreNorm<nn::RMSNorm, nn::GatedFeedForward> gated{nn::RMSNorm(width), nn::GatedFeedForward({width, 24, 0.1}), 0.1};
  nn::RMSNorm joined{width};
  nn::ImageInput<2> pictures{{.extent = {6, 5}}};
  nn::Conv2d convolution{1, 4, {.padding = 1}};
  nn::BatchNorm norm{4, {.activation = nn::Activation::relu}};
  nn::Linear seen{4, width}, head{width, 3};
  nn::Dropout dropout{0.1};

  void visit(auto&& each) {
    each("number", number), each("token", token), each("embedding", embedding), each("bias", bias);
    each("attention", attention), each("gated", gated);
    each("joined", joined), each("convolution", convolution), each("norm", norm), each("seen", seen);
    each("head", head);
  }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, Mixed const& batch) const {
    auto const ids = batch.tokens.tokens();
    auto const places = batch.tokens.places();
    auto const numbers = nn::sequence_of(context, Numbers{{batch.numbers.data(), {4, 6}}, ids.lengths}, places);
    auto const projected = number.forward(context, numbers, nn::Activation::relu);
    auto const x = embedding.forward(context, nn::interleave(projected, token.of(ids)), places);
    auto const z = attention.forward(context, x, bias.forward(context, x));
    auto const [sum, normalized] = joined.join(context, x, z, dropout);
    auto const y = nn::add(context, sum, gated.forward(context, normalized));
    auto const words = nn::segment_of(context, y, 1, numbers.layout);
    auto const read = nn::add(context, nn::mean_pool(context, y), nn::relu(context, nn::first_token(context, words)));

    auto const image =
        pictures.forward(context, TensorView<std::uint8_t const, 2, HostSpace>(batch.bytes.data(), {4, 30}));
    auto const maps = norm.forward(context, convolution.forward(context, image));
    auto const small =
        nn::AveragePool2d({.window = 1, .stride = 1}).forward(context, nn::MaxPool2d().forward(context, maps));
    auto const picture = seen.forward(context, nn::global_average_pool(context, small), nn::Activation::gelu);

    auto const both = dropout.forward(context, nn::gelu(context, nn::add(context, read, picture)), places);
    return nn::mean_squared_error(context, head.forward(context, both),
                                  TensorView<float const, 2, HostSpace>(batch.targets.data(), {4, 3}));
  }
};

TokenBatch some_batch() { return {{9, 1, 5, 8, 2, 7}, length, static_cast<std::int32_t>(vocabulary)}; }

/// Mean losses of the first and of the last of some steps of gradient descent.
template <class Model>
std::pair<double, double> train(Model model) {
  Trial<Model, nn::ActivationsOf<Model>> trial(std::move(model));
  auto const batch = some_batch();
  std::vector<double> losses;
  for (std::uint64_t step = 0; step < 60; ++step) {
    losses.push_back(trial.step(batch, step).mean());
    for (std::size_t i = 0; i < trial.values.size(); ++i) trial.values[i] -= 0.05f * trial.gradients[i];
  }
  return {losses.front(), losses.back()};
}

}  // namespace

TEST_CASE("activations are float unless a model says otherwise") {
  static_assert(std::is_same_v<nn::ActivationsOf<Classifier>, float>);
  static_assert(std::is_same_v<nn::ActivationsOf<Low>, bfloat16>);
  Classifier model;
  Low low(model);
  auto const expected = nn::ParameterLayout::of(model), layout = nn::ParameterLayout::of(low);
  REQUIRE(layout.entries().size() == expected.entries().size());
  for (std::size_t i = 0; i < layout.entries().size(); ++i) {
    CHECK(layout.entries()[i].name == expected.entries()[i].name);
    CHECK(layout.entries()[i].offset == expected.entries()[i].offset);
  }
}

TEST_CASE("a classifier learns in bfloat16 what it learns in float") {
  auto const [first, last] = train(Classifier{});
  auto const [first_low, last_low] = train(Low{Classifier{}});
  // Logits of at most 8 are rounded by 2^-8 of themselves at most, the label's and the others'.
  double const bound = 2 * 8 * 0x1p-8;
  CHECK(last < first / 10);
  CHECK(std::abs(first_low - first) <= bound);
  CHECK(std::abs(last_low - last) <= bound);
}

TEST_CASE("gradients in bfloat16 have the same bits for any number of threads, and a step allocates nothing") {
  auto const batch = some_batch();
  std::vector<float> expected;
  for (int threads : {1, 2, 4}) {
    Trial<Low, bfloat16> trial(Low{Classifier{}}, threads);
    trial.step(batch, 3);
    if (expected.empty()) expected = trial.gradients;
    CHECK(std::memcmp(trial.gradients.data(), expected.data(), expected.size() * sizeof(float)) == 0);
    trial.step(batch, 3);  // memory of several chunks has become one
    auto const before = lockstep_test::mallocs.load();
    trial.step(batch, 3);
    if (lockstep_test::counts_mallocs) CHECK(lockstep_test::mallocs.load() == before);
  }
}

TEST_CASE("every layer gives the gradients that it gives in float, but for rounding") {
  Mixed const batch;
  Trial<Everything, float> trial(Everything{});
  Trial<nn::InBfloat16<Everything>, bfloat16> low(nn::InBfloat16{Everything{}});
  double const loss = trial.step(batch, 3).mean(), loss_low = low.step(batch, 3).mean();
  // At most 40 tensors are rounded on the way to a gradient, each number by 2^-8 of itself at most and in a direction
  // of its own: their errors add up to sqrt(40) 2^-8.
  double const bound = std::sqrt(40.0) * 0x1p-8;
  CHECK(std::abs(loss_low - loss) <= bound * loss);
  for (auto const& entry : trial.layout.entries()) {
    CAPTURE(entry.name);
    double off = 0, all = 0;
    for (Index i = entry.offset; i < entry.offset + entry.size; ++i) {
      auto const at = static_cast<std::size_t>(i);
      double const exact = trial.gradients[at], difference = low.gradients[at] - exact;
      off += difference * difference, all += exact * exact;
    }
    // Softmax and BatchNorm take a constant away: these gradients are zero but for rounding in float, too.
    if (entry.name == "attention.key.bias" || entry.name == "convolution.bias") continue;
    CHECK(all > 0);
    CHECK(off > 0);
    CHECK(std::sqrt(off / all) <= bound);
  }
}
