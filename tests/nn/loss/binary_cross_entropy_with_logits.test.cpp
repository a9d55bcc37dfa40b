// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/binary_cross_entropy_with_logits.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "loss_check.hpp"

using namespace lockstep;

namespace {
auto with(double positive_weight) {
  return [positive_weight](auto& context, auto const& x, auto const& target, double factor) {
    return nn::binary_cross_entropy_with_logits(context, x, target,
                                                {.positive_weight = positive_weight, .factor = factor});
  };
}
auto with(std::vector<float> positive_weights) {
  return [positive_weights](auto& context, auto const& x, auto const& target, double factor) {
    return nn::binary_cross_entropy_with_logits(context, x, target,
                                                {.positive_weights = positive_weights, .factor = factor});
  };
}
}  // namespace

TEST_CASE("binary_cross_entropy_with_logits: value, weight and gradients") {
  for (double weight : {0.0, 1.0, 3.0})
    loss_check::check(with(weight), [weight](double x, double t) {
      return weight * t * std::log1p(std::exp(-x)) + (1 - t) * std::log1p(std::exp(x));
    });
}

TEST_CASE("binary_cross_entropy_with_logits: a positive weight for each label") {
  std::vector<float> const weights{0.5f, 3, 0, 1, 2};
  loss_check::check(with(weights), [&](double x, double t, std::size_t label) {
    return static_cast<double>(weights[label]) * t * std::log1p(std::exp(-x)) + (1 - t) * std::log1p(std::exp(x));
  });
}

TEST_CASE("binary_cross_entropy_with_logits: invalid weights and targets are refused") {
  for (double wrong : {-1.0, std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()})
    CHECK(loss_check::refusal<ConfigError>(loss_check::Model(loss_check::batch, 5, with(wrong)))
              .starts_with("binary_cross_entropy_with_logits: positive_weight is " + shortest(wrong)));
  for (float wrong : {-1.0f, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()})
    CHECK(loss_check::refusal<ConfigError>(
              loss_check::Model(loss_check::batch, 5, with(std::vector<float>{1, 1, 1, wrong, 1})))
              .starts_with("binary_cross_entropy_with_logits: positive_weights[3] is " + shortest(wrong)));
  for (std::size_t count : {1u, 4u, 6u})
    CHECK(
        loss_check::refusal<ShapeError>(loss_check::Model(loss_check::batch, 5, with(std::vector<float>(count, 2)))) ==
        "binary_cross_entropy_with_logits: the prediction is [16, 5] and there are " + std::to_string(count) +
            " weights of its columns; each column needs one");
  std::vector<float> const each(5, 2);
  auto const both = [each](auto& context, auto const& x, auto const& target, double) {
    return nn::binary_cross_entropy_with_logits(context, x, target, {.positive_weight = 3, .positive_weights = each});
  };
  CHECK(loss_check::refusal<ConfigError>(loss_check::Model(loss_check::batch, 5, both)) ==
        "binary_cross_entropy_with_logits: positive_weight is 3 and there are 5 positive_weights; give one for "
        "all labels or one for each, not both");
  loss_check::Model model(loss_check::batch, 5, with(1));
  model.target[4 * 5 * 2 + 3] = 2;
  CHECK(loss_check::refusal<RowError>(model).starts_with(
      "binary_cross_entropy_with_logits: element 3 of token 0 of row 2 of the batch has target 2"));
}
