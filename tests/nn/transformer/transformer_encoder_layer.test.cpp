// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/transformer_encoder_layer.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/add.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, nn::TransformerEncoderLayer const& layer, auto const& x) {
  return layer.forward(context, x);
};
nn::TransformerEncoderLayer make(double dropout = 0, bool norm_first = false, bool causal = false) {
  return nn::TransformerEncoderLayer(
      {.width = 6, .heads = 2, .feed_forward = 10, .dropout = dropout, .causal = causal, .norm_first = norm_first});
}

/// The layer from separate layers.
struct Parts {
  nn::MultiHeadAttention attention{{.width = 6, .heads = 2}};
  nn::LayerNorm attention_norm{6};
  nn::Linear first{6, 10}, second{10, 6};
  nn::LayerNorm feed_forward_norm{6};
  void visit(auto&& each) {
    each("attention", attention);
    each("attention_norm", attention_norm);
    each("first", first);
    each("second", second);
    each("feed_forward_norm", feed_forward_norm);
  }
};
}  // namespace

TEST_CASE("gradients of input and parameters, with padding and dropout") {
  for (Batch const& batch : {Batch{.rows = 1, .length = 1}, Batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}}}) {
    for (double dropout : {0.0, 0.2})
      for (bool norm_first : {false, true})
        for (bool causal : {false, true}) {
          auto const result = check(make(dropout, norm_first, causal), 6, batch, apply);
          CAPTURE(result.where);
          CHECK(result.ok());
        }
  }
}

TEST_CASE("the layer is its parts in PyTorch's order") {
  auto const unfused = [](auto& context, Parts const& p, auto const& x) {
    auto const x1 = p.attention_norm.forward(context, nn::add(context, x, p.attention.forward(context, x)));
    auto const f = p.second.forward(context, nn::gelu(context, p.first.forward(context, x1)));
    return p.feed_forward_norm.forward(context, nn::add(context, x1, f));
  };
  auto const norm_first = [](auto& context, Parts const& p, auto const& x) {
    auto const x1 = nn::add(context, x, p.attention.forward(context, p.attention_norm.forward(context, x)));
    auto const inner = p.first.forward(context, p.feed_forward_norm.forward(context, x1));
    return nn::add(context, x1, p.second.forward(context, nn::gelu(context, inner)));
  };
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}};
  auto const compare = [](auto const& fused, auto const& separate) {
    CHECK(fused.loss == doctest::Approx(separate.loss).epsilon(1e-13));
    REQUIRE(fused.gradients.size() == separate.gradients.size());
    for (std::size_t i = 0; i < fused.gradients.size(); ++i)
      CHECK(fused.gradients[i] == doctest::Approx(separate.gradients[i]).epsilon(1e-12).scale(10));
  };
  compare(run<double>(make(), 6, batch, apply, 1), run<double>(Parts{}, 6, batch, unfused, 1));
  compare(run<double>(make(0, true), 6, batch, apply, 1), run<double>(Parts{}, 6, batch, norm_first, 1));
}

TEST_CASE("by default there is no dropout and no causal mask, and norms come last") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(nn::TransformerEncoderLayer({.width = 6, .heads = 2, .feed_forward = 10}), 6, batch, apply, 1) ==
        run<double>(make(0, false, false), 6, batch, apply, 1));
}

TEST_CASE("padding changes nothing") {
  // Two equal samples, once with and once without padding after them.
  Batch const tight{.rows = 1, .length = 3}, roomy{.rows = 1, .length = 5, .lengths = {3}};
  auto const loss = [](Batch const& batch) {
    Model model(make(0.3), batch.rows * batch.length, 6, apply);
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<double> values(static_cast<std::size_t>(layout.size()));
    for (auto const& entry : layout.entries())
      for (Index i = 0; i < entry.size; ++i)
        values[static_cast<std::size_t>(entry.offset + i)] =
            number(entry.name.size(), i) + 0.01 * static_cast<double>(i);
    lockstep::ThreadPool pool(1);
    nn::Context<double, HostSpace> context{lockstep::memory::Stream<HostSpace>(pool)};
    std::vector<double> gradients(values.size());
    context.parameters().bind(values.data(), gradients.data(), layout.entries().size());
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
    return model.forward(context, batch).sum;
  };
  CHECK(loss(tight) == loss(roomy));
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 20, .length = 30};
  auto const one = run<T>(make(0.1), 6, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(make(0.1), 6, batch, apply, threads) == one);
}

TEST_CASE("names are the parts' names") {
  Model model(make(), 1, 6, apply);
  std::vector<std::string> names;
  auto const layout = nn::ParameterLayout::of(model);
  for (auto const& entry : layout.entries()) names.push_back(entry.name);
  CHECK(names == std::vector<std::string>{"input", "layer.attention.query.weight", "layer.attention.query.bias",
                                          "layer.attention.key.weight", "layer.attention.key.bias",
                                          "layer.attention.value.weight", "layer.attention.value.bias",
                                          "layer.attention.output.weight", "layer.attention.output.bias",
                                          "layer.attention_norm.weight", "layer.attention_norm.bias",
                                          "layer.feed_forward.first.weight", "layer.feed_forward.first.bias",
                                          "layer.feed_forward.second.weight", "layer.feed_forward.second.bias",
                                          "layer.feed_forward_norm.weight", "layer.feed_forward_norm.bias"});
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(nn::TransformerEncoderLayer({.width = 6, .heads = 4, .feed_forward = 8}), lockstep::ShapeError);
  CHECK_THROWS_AS(nn::TransformerEncoderLayer({.width = 6, .heads = 2, .feed_forward = 0}), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::TransformerEncoderLayer({.width = 6, .heads = 2, .feed_forward = 8, .dropout = 1}),
                  lockstep::ConfigError);
  CHECK_THROWS_AS(static_cast<void>(run<float>(make(), 5, {.rows = 2, .length = 2}, apply, 1)), lockstep::ShapeError);
}
