// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/subtract.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
/// x - layer(x): x is used twice, so its gradient is a sum.
auto const left = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::subtract(context, x, layer.forward(context, x));
};
auto const right = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::subtract(context, layer.forward(context, x), x);
};
}  // namespace

TEST_CASE("gradients of both sides") {
  for (Index rows : {1, 4}) {
    Batch const batch{.rows = rows, .length = 9};
    for (auto const& result : {check(nn::Linear(7, 7), 7, batch, left), check(nn::Linear(7, 7), 7, batch, right)}) {
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  }
}

TEST_CASE("shapes that differ are refused with both sides") {
  CHECK(refusal(nn::Linear(5, 3), 5, left) == "subtract: the sides are [4, 5] and [4, 3]; their shapes must be equal");
}
