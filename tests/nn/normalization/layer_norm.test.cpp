// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/layer_norm.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const alone = [](auto& context, nn::LayerNorm const& layer, auto const& x) { return layer.forward(context, x); };
auto const tokens_only = [](auto& context, nn::LayerNorm const& layer, auto const& x) {
  return layer.forward(context, x.tokens, x.tokens);
};

/// norm(x + dropout(linear(x))), as in each half of a transformer layer.
struct Block {
  nn::Linear linear;
  nn::LayerNorm norm;
  nn::Dropout dropout;
  void visit(auto&& each) {
    each("linear", linear);
    each("norm", norm);
  }
};
auto const block = [](auto& context, Block const& b, auto const& x) {
  return b.norm.forward(context, x, b.linear.forward(context, x), b.dropout);
};
Block make(Index width, double p) { return {nn::Linear(width, width), nn::LayerNorm(width), nn::Dropout(p)}; }

}  // namespace

TEST_CASE("gradients, alone and with a residual") {
  for (auto [rows, length] : {std::pair<Index, Index>{1, 1}, {3, 5}, {2, 70}}) {
    for (Index width : {5, 7, 8, 33}) {
      Batch const batch{.rows = rows, .length = length};
      for (auto const& result :
           {check(nn::LayerNorm(width), width, batch, alone), check(nn::LayerNorm(width), width, batch, tokens_only),
            check(make(width, 0), width, batch, block, {.max_per_parameter = 16}),
            check(make(width, 0.3), width, batch, block, {.max_per_parameter = 16})}) {
        CAPTURE(width);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
    }
  }
}

TEST_CASE("a row of one element becomes its bias, whatever the input") {
  auto const result = check(nn::LayerNorm(1), 1, {.rows = 2, .length = 2}, alone);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("a row can be wider than the buffer of the fused dropout") {
  auto const result = check(make(300, 0.3), 300, {.rows = 1, .length = 2}, block, {.max_per_parameter = 16});
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("fused dropout equals the dropout layer") {
  Batch const batch{.rows = 3, .length = 4, .lengths = {4, 2, 0}};
  auto const unfused = [](auto& context, Block const& b, auto const& x) {
    return b.norm.forward(context, x, b.dropout.forward(context, b.linear.forward(context, x)), nn::Dropout(0));
  };
  auto const fused = run<double>(make(12, 0.5), 12, batch, block, 1),
             separate = run<double>(make(12, 0.5), 12, batch, unfused, 1);
  CHECK(fused == separate);
}

TEST_CASE_TEMPLATE("a sum in the addend's memory, and a discarded norm, give equal bits", T, float, double) {
  Batch const batch{.rows = 3, .length = 50, .lengths = {50, 1, 0}};
  auto const sparing = [](auto& context, Block const& b, auto const& x) {
    auto const y = b.norm.forward_in_place(context, x, b.linear.forward(context, x), b.dropout);
    auto const z = b.norm.forward_in_place(context, y, b.linear.forward(context, y), b.dropout);
    context.release_until_backward(y.tokens);
    auto const normalized = b.norm.forward(context, z);
    auto const last = b.linear.forward(context, normalized);
    context.release_until_backward(normalized.tokens);
    return last;
  };
  auto const keeping = [](auto& context, Block const& b, auto const& x) {
    auto const y = block(context, b, x);
    return b.linear.forward(context, b.norm.forward(context, block(context, b, y)));
  };
  for (Index width : {7, 40})
    for (double dropout : {0.0, 0.3}) {
      auto const b = make(width, dropout);
      CHECK(run<T>(b, width, batch, sparing, 1, 2) == run<T>(b, width, batch, keeping, 1, 2));
      CHECK(evaluate<T>(b, width, batch, sparing) == evaluate<T>(b, width, batch, keeping));
    }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 9, .length = 50};
  auto const one = run<T>(make(40, 0.1), 40, batch, block, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(make(40, 0.1), 40, batch, block, threads) == one);
}

TEST_CASE("an empty batch gives gradients of zero") {
  auto const pass = run<float>(nn::LayerNorm(5), 5, {.rows = 0, .length = 4}, alone, 2);
  for (float g : pass.gradients) CHECK(g == 0);
}

TEST_CASE("evaluation applies no dropout and stores nothing") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(evaluate<double>(make(6, 0.5), 6, batch, block) == run<double>(make(6, 0), 6, batch, block, 1).loss);
}

TEST_CASE("weights start at one and biases at zero, and by default 1e-5 is added to the variance") {
  nn::LayerNorm layer(5);
  auto const layout = nn::ParameterLayout::of(layer);
  CHECK(layout.entries()[0].initializer.scale == 1);
  CHECK(layout.entries()[1].initializer.scale == 0);
  Batch const batch{.rows = 2, .length = 3};
  CHECK(run<double>(layer, 5, batch, alone, 1) == run<double>(nn::LayerNorm(5, 1e-5), 5, batch, alone, 1));
}

TEST_CASE("shapes that disagree are refused with both numbers") {
  CHECK(refusal(nn::LayerNorm(5), 6, alone) ==
        "LayerNorm layer: the input is [4, 6] and weight is [5]; the input needs 5 columns");
  CHECK(refusal(Block{nn::Linear(6, 5), nn::LayerNorm(6), nn::Dropout(0)}, 6, block) ==
        "LayerNorm layer.norm: the input is [4, 6] and the residual [4, 5]; their shapes must be equal");
  CHECK_THROWS_AS(nn::LayerNorm(0), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::LayerNorm(4, 0), lockstep::ConfigError);
}
