// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/linear/linear.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/elementwise/gelu_tanh.hpp>
#include <lockstep/nn/elementwise/relu.hpp>
#include <lockstep/nn/elementwise/silu.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, nn::Linear const& layer, auto const& x) { return layer.forward(context, x); };
}

TEST_CASE("gradients of input, weight and bias") {
  for (auto [rows, length] : {std::pair<Index, Index>{0, 1}, {1, 1}, {3, 5}, {1, 33}}) {
    auto const result = check(nn::Linear(5, 3), 5, {.rows = rows, .length = length}, apply);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("without a bias: gradients of input and weight, and no addition") {
  auto const without = nn::Linear(5, 3, nn::Bias::none);
  for (auto [rows, length] : {std::pair<Index, Index>{0, 1}, {1, 1}, {3, 5}, {1, 33}, {2, 300}}) {
    auto const result = check(without, 5, {.rows = rows, .length = length}, apply);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
  Model model(without, 1, 5, apply);
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == 2);
  CHECK(layout.entries()[1].name == "layer.weight");
  // All zeros in, all zeros out.
  Batch const batch{.rows = 2, .length = 2};
  auto const zero = [](auto& context, nn::Linear const& layer, auto const& x) {
    std::fill_n(x.tokens.value.data, x.tokens.value.size(), 0);
    return layer.forward(context, x);
  };
  CHECK(evaluate<double>(without, 5, batch, zero) == 0);
  CHECK(evaluate<double>(nn::Linear(5, 3), 5, batch, zero) != 0);
}

TEST_CASE("a fused activation has exact gradients, and equals separate layers") {
  for (auto activation :
       {nn::Activation::gelu, nn::Activation::gelu_tanh, nn::Activation::silu, nn::Activation::relu}) {
    auto const fused = [=](auto& context, nn::Linear const& layer, auto const& x) {
      return layer.forward(context, x, activation);
    };
    auto const unfused = [=](auto& context, nn::Linear const& layer, auto const& x) {
      auto const h = layer.forward(context, x);
      return activation == nn::Activation::gelu        ? nn::gelu(context, h)
             : activation == nn::Activation::gelu_tanh ? nn::gelu_tanh(context, h)
             : activation == nn::Activation::silu      ? nn::silu(context, h)
                                                       : nn::relu(context, h);
    };
    for (auto [rows, length] : {std::pair<Index, Index>{0, 1}, {1, 1}, {3, 5}, {1, 33}}) {
      auto const result = check(nn::Linear(5, 3), 5, {.rows = rows, .length = length}, fused);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
    for (auto bias : {nn::Bias::learned, nn::Bias::none}) {
      nn::Linear const layer(33, 20, bias);
      Batch const batch{.rows = 9, .length = 100};
      auto const expected = run<float>(layer, 33, batch, unfused, 1);
      for (int threads : {1, 2}) CHECK(run<float>(layer, 33, batch, fused, threads) == expected);
      CHECK(evaluate<float>(layer, 33, batch, fused) == expected.loss);
    }
  }
}

TEST_CASE("a second micro-batch accumulates") {
  Batch const batch{.rows = 4, .length = 300};  // more rows than one partial sum
  auto const once = run<float>(nn::Linear(7, 9), 7, batch, apply, 1),
             twice = run<float>(nn::Linear(7, 9), 7, batch, apply, 1, 2);
  for (std::size_t i = 0; i < once.gradients.size(); ++i)
    CHECK(twice.gradients[i] == 2 * once.gradients[i]);  // exact: powers of two
}

TEST_CASE_TEMPLATE("bits do not depend on threads or repetition", T, float, double) {
  Batch const batch{.rows = 9, .length = 150};
  auto const one = run<T>(nn::Linear(33, 20), 33, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<T>(nn::Linear(33, 20), 33, batch, apply, threads) == one);
}

TEST_CASE("an empty batch gives gradients of zero") {
  auto const pass = run<float>(nn::Linear(5, 3), 5, {.rows = 0, .length = 4}, apply, 2);
  CHECK(pass.loss == 0);
  for (float g : pass.gradients) CHECK(g == 0);
}

TEST_CASE("evaluation gives equal values without recording") {
  Batch const batch{.rows = 2, .length = 3};
  CHECK(evaluate<double>(nn::Linear(5, 3), 5, batch, apply) == run<double>(nn::Linear(5, 3), 5, batch, apply, 1).loss);
}

TEST_CASE("an input of another width is refused with both numbers") {
  std::string what;
  try {
    static_cast<void>(run<float>(nn::Linear(5, 3), 6, {.rows = 2, .length = 2}, apply, 1));
  } catch (lockstep::ShapeError const& error) {
    what = error.what();
  }
  CHECK(what.find("Linear layer: the input is [4, 6] and weight is [3, 5]") != std::string::npos);
  CHECK_THROWS_AS(nn::Linear(0, 3), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::Linear(3, 0), lockstep::ConfigError);
  CHECK_THROWS_AS(nn::Linear(3, -1), lockstep::ConfigError);
  CHECK_NOTHROW(nn::Linear(1, 1));
}
