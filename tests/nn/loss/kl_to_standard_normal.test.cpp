// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/kl_to_standard_normal.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include "loss_check.hpp"

using namespace lockstep;

TEST_CASE("the divergence from the standard normal distribution: value, weight and gradients") {
  // One variable as both: mean and logarithm of the deviation.
  loss_check::check([](auto& context, auto const& x, auto const&,
                       double factor) { return nn::kl_to_standard_normal(context, x, x, {.factor = factor}); },
                    [](double x, double) { return (x * x + std::exp(2 * x) - 1) / 2 - x; });
}

TEST_CASE("the divergence of the standard normal distribution from itself is zero") {
  lockstep_test::TokenBatch const rows({1, 1, 1}, 1, 11);
  loss_check::Model const model(rows, 1, [](auto& context, auto const& x, auto const&, double) {
    return nn::kl_to_standard_normal(context, x, x);
  });
  lockstep_test::Trial<std::remove_const_t<decltype(model)>, float> trial(model);
  for (auto& value : trial.values) value = 0;
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(context, trial.model.prediction);
  auto const loss = nn::kl_to_standard_normal(context, x, x);
  CHECK(loss.sum == 0);
  CHECK(loss.weight == 3);
}
