// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/quantile_loss.hpp>

#include <limits>

#include <doctest/doctest.h>

#include <lockstep/core/shortest.hpp>

#include "loss_check.hpp"

using namespace lockstep;

namespace {
auto with(double quantile) {
  return [quantile](auto& context, auto const& x, auto const& target, double factor) {
    return nn::quantile_loss(context, x, target, {.quantile = quantile, .factor = factor});
  };
}
}  // namespace

TEST_CASE("quantile_loss: value, weight and gradients") {
  for (double q : {0.1, 0.5, 0.9})
    loss_check::check(with(q), [q](double x, double t) { return x < t ? q * (t - x) : (1 - q) * (x - t); });
}

TEST_CASE("quantile_loss: a quantile outside (0, 1) is refused") {
  for (double wrong : {0.0, 1.0, 90.0, -0.1, std::numeric_limits<double>::quiet_NaN()})
    CHECK(loss_check::refusal<ConfigError>(loss_check::Model(loss_check::batch, 5, with(wrong))) ==
          "quantile_loss: the quantile is " + shortest(wrong) + "; it must be above 0 and below 1, such as 0.9");
}
