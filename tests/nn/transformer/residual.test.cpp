// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/transformer/residual.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace lockstep;

namespace {
auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const apply_to_rows = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, x.tokens);
};
layer_check::Batch const batch{.rows = 2, .length = 3, .lengths = {3, 1}};

struct ByHand {
  nn::Linear block{5, 5};
  void visit(auto&& each) { block.visit(each); }
  auto forward(auto& context, auto const& x) const { return nn::add(context, x, block.forward(context, x)); }
};
}  // namespace

TEST_CASE("Residual: x plus the block's output, under the block's names") {
  nn::Residual model{nn::Linear{5, 5}};
  CHECK(nn::ParameterLayout::of(model).entries()[0].name == "weight");
  auto const pass = layer_check::run<float>(model, 5, batch, apply, 1);
  CHECK(pass == layer_check::run<float>(ByHand{}, 5, batch, apply, 1));
  CHECK(pass == layer_check::run<float>(model, 5, batch, apply_to_rows, 2));
}

TEST_CASE("Residual: gradients, also if nested") {
  auto const result = layer_check::check(nn::Residual{nn::Residual{nn::Linear{5, 5}}}, 5, batch, apply);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("Residual: a block that changes the shape is refused") {
  CHECK_THROWS_WITH_AS(static_cast<void>(layer_check::run<float>(nn::Residual{nn::Linear{5, 4}}, 5, batch, apply, 1)),
                       doctest::Contains("the sides are [6, 5] and [6, 4]"), ShapeError);
}
