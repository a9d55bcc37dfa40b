// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/gated_feed_forward.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <string>
#include <tuple>
#include <utility>

#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/elementwise/silu.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
constexpr std::array activations{nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu};

auto const apply = [](auto& context, nn::GatedFeedForward const& layer, auto const& x) {
  return layer.forward(context, x);
};

nn::GatedFeedForward make(Index width, Index inner, double dropout = 0, nn::Bias bias = nn::Bias::learned,
                          nn::Activation activation = nn::Activation::gelu) {
  return nn::GatedFeedForward(
      {.width = width, .inner = inner, .dropout = dropout, .bias = bias, .activation = activation});
}

/// The block from separate layers.
struct Parts {
  nn::Linear gate, up, down;
  nn::Dropout dropout;
  nn::Activation activation;
  void visit(auto&& each) {
    each("gate", gate);
    each("up", up);
    each("down", down);
  }
};

/// z = x * y elementwise.
template <class Context, class Tokens>
Tokens multiply(Context& context, Tokens const& x, Tokens const& y) {
  auto const z = context.template variable<2>(x.tokens.value.extent);
  for (Index i = 0; i < z.value.size(); ++i) z.value.data[i] = x.tokens.value.data[i] * y.tokens.value.data[i];
  context.on_backward(z, std::tuple{}, [=](Context& c) {
    auto const flow = [&](auto const& to, auto const& other) {
      auto const d = c.gradient(to.tokens);
      for (Index i = 0; i < z.value.size(); ++i)
        d.data[i] =
            z.gradient().data[i] * other.tokens.value.data[i] + (d.write == lockstep::Write::add ? d.data[i] : 0);
    };
    flow(x, y);
    flow(y, x);
  });
  return x.with(z);
}
auto const unfused = [](auto& context, Parts const& p, auto const& x) {
  auto const before = p.gate.forward(context, x);
  auto const activated = p.activation == nn::Activation::gelu        ? nn::gelu(context, before)
                         : p.activation == nn::Activation::gelu_tanh ? nn::gelu_tanh(context, before)
                                                                     : nn::silu(context, before);
  auto const gate = p.dropout.forward(context, activated);
  return p.down.forward(context, multiply(context, gate, p.up.forward(context, x)));
};

}  // namespace

TEST_CASE("gradients of input and parameters") {
  for (auto [rows, length] : {std::pair<Index, Index>{1, 1}, {3, 5}, {1, 33}}) {
    for (double dropout : {0.0, 0.25})
      for (auto bias : {nn::Bias::learned, nn::Bias::none}) {
        for (auto activation : activations) {
          auto const result = check(make(5, 13, dropout, bias, activation), 5, {.rows = rows, .length = length}, apply);
          CAPTURE(result.where);
          CHECK(result.ok());
        }
      }
  }
}

TEST_CASE("the fused layer equals its parts") {
  Batch const batch{.rows = 3, .length = 4};
  for (std::size_t variant = 0; variant < 2 * activations.size(); ++variant) {
    double const dropout = variant % 2 == 0 ? 0.0 : 0.5;
    auto const activation = activations[variant / 2];
    auto const fused = run<double>(make(9, 20, dropout, nn::Bias::learned, activation), 9, batch, apply, 1);
    auto const separate =
        run<double>(Parts{nn::Linear(9, 20), nn::Linear(9, 20), nn::Linear(20, 9), nn::Dropout(dropout), activation}, 9,
                    batch, unfused, 1);
    CHECK(fused.loss == doctest::Approx(separate.loss).epsilon(1e-14));
    REQUIRE(fused.gradients.size() == separate.gradients.size());
    // Equal terms, multiplied and added in another order.
    for (std::size_t i = 0; i < fused.gradients.size(); ++i)
      CHECK(fused.gradients[i] == doctest::Approx(separate.gradients[i]).epsilon(1e-13).scale(10));
  }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 11, .length = 60};
  auto const one = run<T>(make(24, 40, 0.1), 24, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(make(24, 40, 0.1), 24, batch, apply, threads) == one);
}

TEST_CASE("a second micro-batch accumulates") {
  Batch const batch{.rows = 2, .length = 300};
  auto const once = run<float>(make(8, 16), 8, batch, apply, 1), twice = run<float>(make(8, 16), 8, batch, apply, 1, 2);
  for (std::size_t i = 0; i < once.gradients.size(); ++i) CHECK(twice.gradients[i] == 2 * once.gradients[i]);
}

TEST_CASE("evaluation applies no dropout") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(evaluate<double>(make(6, 8, 0.5), 6, batch, apply) == run<double>(make(6, 8, 0), 6, batch, apply, 1).loss);
}

TEST_CASE("names are the parts' names") {
  auto const names = [](nn::Bias bias) {
    Model model(make(4, 6, 0, bias), 1, 4, apply);
    std::string all;
    auto const layout = nn::ParameterLayout::of(model);
    for (auto const& entry : layout.entries()) all += entry.name + " ";
    return all;
  };
  CHECK(names(nn::Bias::learned) ==
        "input layer.gate.weight layer.gate.bias layer.up.weight layer.up.bias layer.down.weight layer.down.bias ");
  CHECK(names(nn::Bias::none) == "input layer.gate.weight layer.up.weight layer.down.weight ");
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(static_cast<void>(run<float>(make(5, 8), 6, {.rows = 2, .length = 2}, apply, 1)),
                  lockstep::ShapeError);
  CHECK_THROWS_AS(nn::GatedFeedForward({.width = 5, .inner = 0}), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::GatedFeedForward({.width = 5, .inner = 8, .dropout = 1}), lockstep::ConfigError);
  CHECK_THROWS_WITH_AS(make(5, 8, 0, nn::Bias::none, nn::Activation::relu),
                       doctest::Contains("GatedFeedForward: activation relu; the gates have gelu, gelu_tanh or silu"),
                       lockstep::ConfigError);
  CHECK_THROWS_AS(make(5, 8, 0, nn::Bias::none, nn::Activation::none), lockstep::ConfigError);
}
