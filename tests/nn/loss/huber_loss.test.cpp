// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/huber_loss.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "loss_check.hpp"

using namespace lockstep;

namespace {
auto with(double delta) {
  return [delta](auto& context, auto const& x, auto const& target, double factor) {
    return nn::huber_loss(context, x, target, {.delta = delta, .factor = factor});
  };
}
}  // namespace

TEST_CASE("huber_loss: value, weight and gradients") {
  for (double delta : {0.4, 1.0})
    loss_check::check(with(delta), [delta](double x, double t) {
      double const d = std::abs(x - t);
      return d <= delta ? d * d / 2 : delta * (d - delta / 2);
    });
}

TEST_CASE("huber_loss: a delta that is not positive is refused") {
  for (double wrong : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()})
    CHECK(loss_check::refusal<ConfigError>(loss_check::Model(loss_check::batch, 5, with(wrong))) ==
          "huber_loss: delta is " + shortest(wrong) + "; it must be positive, and 1 is usual");
}
