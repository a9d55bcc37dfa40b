// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/layer_scale.hpp>

#include <doctest/doctest.h>

#include <limits>

#include <lockstep/nn/module/initialize.hpp>

#include "nn/layer_check.hpp"
#include "nn/space_check.hpp"

using namespace layer_check;

namespace {
auto const apply = [](auto& context, nn::LayerScale const& layer, auto const& x) { return layer.forward(context, x); };
auto const twice = [](auto& context, nn::LayerScale const& layer, auto const& x) {
  return layer.forward(context, layer.forward(context, x));
};
/// Without a gradient of its own.
auto const of_input = [](auto& context, nn::LayerScale const& layer, auto const& x) {
  return layer.forward(context, x.with({x.tokens.value, nullptr}));
};
/// A block whose `visit` names the factors as in its file.
struct Named {
  nn::LayerScale scale{5, 0.5};
  void visit(auto&& each) {
    scale.visit([&](auto const&, auto& factors) { each("gamma", factors); });
  }
};
}  // namespace

TEST_CASE("gradients of the factors and of the input, for sequences, with padding, and images") {
  Batch padded{.rows = 7, .length = 5};
  padded.lengths = {5, 0, 1, 3, 5, 2, 4};
  for (Batch const& batch : {Batch{.rows = 1, .length = 1}, Batch{.rows = 40, .length = 5}, padded}) {
    auto const result = check(nn::LayerScale{9}, 9, batch, apply);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
  auto const shared = check(nn::LayerScale{9}, 9, padded, twice);
  CAPTURE(shared.where);
  CHECK(shared.ok());
  auto const matrix = space_check::trial<double>(nn::LayerScale{5}, lockstep::Extents<2>{31, 5}, apply).check();
  CAPTURE(matrix.where);
  CHECK(matrix.ok());
  auto const image = space_check::trial<double>(nn::LayerScale{5}, lockstep::Extents<4>{2, 4, 3, 5}, twice).check();
  CAPTURE(image.where);
  CHECK(image.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  Batch const batch{.rows = 70, .length = 5};
  auto const one = run<T>(nn::LayerScale{33}, 33, batch, apply, 1);
  for (int threads : {2, 4}) CHECK(run<T>(nn::LayerScale{33}, 33, batch, apply, threads) == one);
  CHECK(evaluate<T>(nn::LayerScale{33}, 33, batch, apply) == one.loss);
  // The factors' gradient does not depend on whether the input is learned, and grows with every micro-batch.
  auto const alone = run<T>(nn::LayerScale{33}, 33, batch, of_input, 1);
  auto const two = run<T>(nn::LayerScale{33}, 33, batch, apply, 1, 2);
  CHECK(alone.loss == one.loss);
  for (std::size_t c = 0; c < 33; ++c) {  // parameters are in the order of backward
    CHECK(alone.gradients[c] == one.gradients[c]);
    CHECK(two.gradients[c] == 2 * one.gradients[c]);
  }
}

TEST_CASE("an empty batch gives gradients of zero") {
  auto trial = space_check::trial<float>(nn::LayerScale{5}, lockstep::Extents<3>{0, 4, 5}, apply);
  trial.gradients.assign(trial.gradients.size(), 7.0f);
  CHECK(trial.run(2) == 0);
  for (std::size_t c = 0; c < 5; ++c) CHECK(trial.gradients[c] == 0);
}

TEST_CASE("the factors start near zero, and are named weight unless a visit gives them another name") {
  nn::LayerScale layer{5};
  auto const layout = nn::ParameterLayout::of(layer);
  REQUIRE(layout.entries().size() == 1);
  CHECK(layout.entries()[0].name == "weight");
  CHECK(nn::initial_values(layout, 1)[4] == 1e-6f);
  Named other;
  auto const of_other = nn::ParameterLayout::of(other);
  REQUIRE(of_other.entries().size() == 1);
  CHECK(of_other.entries()[0].name == "gamma");
  CHECK(nn::initial_values(of_other, 1)[4] == 0.5f);
}

TEST_CASE("invalid inputs are refused") {
  CHECK(refusal(nn::LayerScale{5}, 4, apply) ==
        "LayerScale layer: the input is [4, 4] and weight is [5]; the input needs 5 columns");
  CHECK_THROWS_WITH_AS(
      nn::LayerScale(0),
      "LayerScale: 0 channels and the initial value 1e-06; there must be at least 1 channel, and the initial "
      "value must be finite",
      lockstep::ConfigError);
  CHECK_THROWS_AS(nn::LayerScale(4, std::numeric_limits<double>::infinity()), lockstep::ConfigError);
}
