// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/feed_forward.hpp>

#include <array>
#include <cstddef>

#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/silu.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
constexpr std::array activations{nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu,
                                 nn::Activation::relu};

auto const apply = [](auto& context, nn::FeedForward const& layer, auto const& x) { return layer.forward(context, x); };

/// The block from separate layers.
struct Parts {
  nn::Linear first, second;
  nn::Dropout dropout;
  nn::Activation activation;
  void visit(auto&& each) {
    each("first", first);
    each("second", second);
  }
};
auto const unfused = [](auto& context, Parts const& p, auto const& x) {
  auto const h = p.first.forward(context, x);
  auto const activated = p.activation == nn::Activation::gelu        ? nn::gelu(context, h)
                         : p.activation == nn::Activation::gelu_tanh ? nn::gelu_tanh(context, h)
                         : p.activation == nn::Activation::silu      ? nn::silu(context, h)
                                                                     : nn::relu(context, h);
  return p.second.forward(context, p.dropout.forward(context, activated));
};

}  // namespace

TEST_CASE("gradients of input and parameters") {
  for (auto [rows, length] : {std::pair<Index, Index>{1, 1}, {3, 5}, {1, 33}}) {
    for (double dropout : {0.0, 0.25})
      for (auto activation : activations) {
        nn::FeedForward const layer(5, 13, dropout, activation);
        auto const result = check(layer, 5, {.rows = rows, .length = length}, apply);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
  }
}

TEST_CASE("the fused layer equals its parts") {
  Batch const batch{.rows = 3, .length = 4};
  for (std::size_t variant = 0; variant < 2 * activations.size(); ++variant) {
    double const dropout = variant % 2 == 0 ? 0.0 : 0.5;
    auto const activation = activations[variant / 2];
    auto const fused = run<double>(nn::FeedForward(9, 20, dropout, activation), 9, batch, apply, 1);
    auto const separate = run<double>(Parts{nn::Linear(9, 20), nn::Linear(20, 9), nn::Dropout(dropout), activation}, 9,
                                      batch, unfused, 1);
    CHECK(fused.loss == doctest::Approx(separate.loss).epsilon(1e-14));
    REQUIRE(fused.gradients.size() == separate.gradients.size());
    // Equal terms, multiplied in another order: slope and dropout are one factor here.
    for (std::size_t i = 0; i < fused.gradients.size(); ++i)
      CHECK(fused.gradients[i] == doctest::Approx(separate.gradients[i]).epsilon(1e-13).scale(10));
  }
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 18, .length = 60};  // more rows than one thread processes together
  for (double dropout : {0.0, 0.1}) {
    auto const one = run<T>(nn::FeedForward(24, 40, dropout), 24, batch, apply, 1);
    for (int threads : {1, 2, 4}) CHECK(run<T>(nn::FeedForward(24, 40, dropout), 24, batch, apply, threads) == one);
  }
}

TEST_CASE("a second micro-batch accumulates") {
  Batch const batch{.rows = 2, .length = 300};
  auto const once = run<float>(nn::FeedForward(8, 16), 8, batch, apply, 1),
             twice = run<float>(nn::FeedForward(8, 16), 8, batch, apply, 1, 2);
  for (std::size_t i = 0; i < once.gradients.size(); ++i) CHECK(twice.gradients[i] == 2 * once.gradients[i]);
}

TEST_CASE("evaluation applies no dropout") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(evaluate<double>(nn::FeedForward(6, 8, 0.5), 6, batch, apply) ==
        run<double>(nn::FeedForward(6, 8, 0), 6, batch, apply, 1).loss);
}

TEST_CASE("invalid settings are refused") {
  CHECK_THROWS_AS(static_cast<void>(run<float>(nn::FeedForward(5, 8), 6, {.rows = 2, .length = 2}, apply, 1)),
                  lockstep::ShapeError);
  CHECK_THROWS_WITH_AS(nn::FeedForward(5, 0),
                       "FeedForward: the width is 5 and the inner width (feed_forward) 0; both must be at least 1",
                       lockstep::ConfigError);
  CHECK_THROWS_AS(nn::FeedForward(5, 8, 1.0), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::FeedForward(5, 8, 0, nn::Activation::none), lockstep::ConfigError);
}
