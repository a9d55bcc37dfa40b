// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/binary_cross_entropy_with_logits.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "nn/loss_check.hpp"

using namespace lockstep;

namespace {
auto with(double positive_weight) {
  return [positive_weight](auto& context, auto const& x, auto const& target, double factor) {
    return nn::binary_cross_entropy_with_logits(context, x, target,
                                                {.positive_weight = positive_weight, .factor = factor});
  };
}
}  // namespace

TEST_CASE("binary_cross_entropy_with_logits: value, weight and gradients") {
  for (double weight : {0.0, 1.0, 3.0})
    loss_check::check(with(weight), [weight](double x, double t) {
      return weight * t * std::log1p(std::exp(-x)) + (1 - t) * std::log1p(std::exp(x));
    });
}

TEST_CASE("binary_cross_entropy_with_logits: bad weights and targets are refused") {
  for (double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(loss_check::refusal<ConfigError>(loss_check::Model(loss_check::batch, 5, with(wrong)))
              .starts_with("binary_cross_entropy_with_logits: positive_weight is " + std::to_string(wrong)));
  loss_check::Model model(loss_check::batch, 5, with(1));
  model.target[4 * 5 * 2 + 3] = 2;
  CHECK(loss_check::refusal<RowError>(model).starts_with(
      "binary_cross_entropy_with_logits: element 3 of token 0 of row 2 of the batch has target 2"));
}
