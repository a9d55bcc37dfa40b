// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/transformer_decoder_layer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {

nn::TransformerDecoderLayer make(double dropout = 0, bool norm_first = false) {
  return nn::TransformerDecoderLayer(
      {.width = 6, .heads = 2, .feed_forward = 10, .dropout = dropout, .norm_first = norm_first});
}

/// The layer with a memory computed from its input, so that gradients pass through both sides.
template <class Layer>
struct WithMemory {
  Layer layer;
  nn::Linear remember{6, 6};
  void visit(auto&& each) {
    each("layer", layer);
    each("remember", remember);
  }
};
template <class Layer>
WithMemory(Layer) -> WithMemory<Layer>;

auto const apply = [](auto& context, auto const& both, auto const& x) {
  return both.layer.forward(context, x, both.remember.forward(context, x));
};

/// The layer from separate layers.
struct Parts {
  nn::MultiHeadAttention attention{{.width = 6, .heads = 2, .causal = true}};
  nn::LayerNorm attention_norm{6};
  nn::MultiHeadAttention cross_attention{{.width = 6, .heads = 2}};
  nn::LayerNorm cross_attention_norm{6};
  nn::Linear first{6, 10}, second{10, 6};
  nn::LayerNorm feed_forward_norm{6};
  bool norm_first = false;
  void visit(auto&& each) {
    each("attention", attention);
    each("attention_norm", attention_norm);
    each("cross_attention", cross_attention);
    each("cross_attention_norm", cross_attention_norm);
    each("first", first);
    each("second", second);
    each("feed_forward_norm", feed_forward_norm);
  }
  auto forward(auto& c, auto const& x, auto const& memory) const {
    auto const feed_forward = [&](auto const& in) { return second.forward(c, nn::gelu(c, first.forward(c, in))); };
    if (norm_first) {
      auto const x1 = nn::add(c, x, attention.forward(c, attention_norm.forward(c, x)));
      auto const x2 = nn::add(c, x1, cross_attention.forward(c, cross_attention_norm.forward(c, x1), memory));
      return nn::add(c, x2, feed_forward(feed_forward_norm.forward(c, x2)));
    }
    auto const x1 = attention_norm.forward(c, nn::add(c, x, attention.forward(c, x)));
    auto const x2 = cross_attention_norm.forward(c, nn::add(c, x1, cross_attention.forward(c, x1, memory)));
    return feed_forward_norm.forward(c, nn::add(c, x2, feed_forward(x2)));
  }
};

}  // namespace

TEST_CASE("gradients of input, memory and parameters, with padding and dropout") {
  for (Batch const& batch : {Batch{.rows = 1, .length = 1}, Batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}}})
    for (double dropout : {0.0, 0.2})
      for (bool norm_first : {false, true}) {
        auto const result = check(WithMemory{make(dropout, norm_first)}, 6, batch, apply);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
}

TEST_CASE("the layer is its parts in PyTorch's order") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 1, 0}};
  for (bool norm_first : {false, true}) {
    Parts parts;
    parts.norm_first = norm_first;
    auto const fused = run<double>(WithMemory{make(0, norm_first)}, 6, batch, apply, 1),
               separate = run<double>(WithMemory{parts}, 6, batch, apply, 1);
    CHECK(fused.loss == doctest::Approx(separate.loss).epsilon(1e-13));
    REQUIRE(fused.gradients.size() == separate.gradients.size());
    for (std::size_t i = 0; i < fused.gradients.size(); ++i)
      CHECK(fused.gradients[i] == doctest::Approx(separate.gradients[i]).epsilon(1e-12).scale(10));
  }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 20, .length = 30};
  auto const one = run<T>(WithMemory{make(0.1)}, 6, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(WithMemory{make(0.1)}, 6, batch, apply, threads) == one);
}

TEST_CASE("names are the parts' names") {
  Model model(WithMemory{make()}, 1, 6, apply);
  auto const layout = nn::ParameterLayout::of(model);
  auto const has = [&](std::string const& name) {
    return std::any_of(layout.entries().begin(), layout.entries().end(),
                       [&](auto const& entry) { return entry.name == "layer.layer." + name; });
  };
  CHECK(has("attention.query.weight"));
  CHECK(has("cross_attention.output.bias"));
  CHECK(has("cross_attention_norm.weight"));
  CHECK(has("feed_forward.second.bias"));
  CHECK(has("feed_forward_norm.bias"));
  CHECK(layout.entries().size() == 3 + 2 * 8 + 4 + 3 * 2);
}

TEST_CASE("by default there is no dropout, and norms come last") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(WithMemory{nn::TransformerDecoderLayer({.width = 6, .heads = 2, .feed_forward = 10})}, 6, batch,
                    apply, 1) == run<double>(WithMemory{make(0, false)}, 6, batch, apply, 1));
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(nn::TransformerDecoderLayer({.width = 6, .heads = 4, .feed_forward = 8}), lockstep::ShapeError);
  CHECK_THROWS_AS(nn::TransformerDecoderLayer({.width = 6, .heads = 2, .feed_forward = 0}), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::TransformerDecoderLayer({.width = 6, .heads = 2, .feed_forward = 8, .dropout = 1}),
                  lockstep::ConfigError);
}
