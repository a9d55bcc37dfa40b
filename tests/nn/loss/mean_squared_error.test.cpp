// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include <doctest/doctest.h>

#include "loss_check.hpp"

TEST_CASE("mean_squared_error: value, weight and gradients") {
  loss_check::check(
      [](auto& context, auto const& x, auto const& target, double factor) {
        return lockstep::nn::mean_squared_error(context, x, target, {.factor = factor});
      },
      [](double x, double t) { return (x - t) * (x - t); });
}
