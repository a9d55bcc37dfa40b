// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/add.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear.hpp>

#include "layer_check.hpp"

using namespace layer_check;

namespace {
/// x + layer(x): x is used twice, so that its gradient is a sum.
auto const residual = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::add(context, x, layer.forward(context, x));
};
/// Both sides are the same tensor.
auto const doubled = [](auto& context, nn::Linear const& layer, auto const& x) {
  auto const y = layer.forward(context, x);
  return nn::add(context, y, y);
};
}  // namespace

TEST_CASE("gradients of both sides") {
  for (Index rows : {1, 4}) {
    Batch const batch{.rows = rows, .length = 9};
    for (auto const& result :
         {check(nn::Linear(7, 7), 7, batch, residual), check(nn::Linear(7, 7), 7, batch, doubled)}) {
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  }
}

TEST_CASE("shapes that differ are refused with both sides") {
  std::string what;
  try {
    static_cast<void>(run<float>(nn::Linear(5, 3), 5, {.rows = 2, .length = 2}, residual, 1));
  } catch (lockstep::ShapeError const& error) {
    what = error.what();
  }
  CHECK(what == "add: the sides are [4, 5] and [4, 3]; they must be alike");
}
