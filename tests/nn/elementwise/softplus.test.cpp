// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/softplus.hpp>

#include <cmath>
#include <limits>
#include <type_traits>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::softplus(context, x); };
}  // namespace

TEST_CASE("gradient of the input") { activation_check::check_gradients(apply); }

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}

TEST_CASE_TEMPLATE("beta and its reciprocal must be numbers of the type", T, float, double) {
  activation_check::Batch const batch{.rows = 1, .length = 1};
  auto const run_with = [&](double beta) {
    auto const softplus = [beta](auto& context, auto const&, auto const& x) {
      return lockstep::nn::softplus(context, x, beta);
    };
    return activation_check::run<T>(activation_check::NoParameters{}, 1, batch, softplus, 1).loss;
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(run_with(0)),
                       "softplus: beta is 0; beta and 1 / beta must be above 0 and finite, also when rounded to the "
                       "model's type (float32 by default)",
                       lockstep::ConfigError);
  auto const infinite = std::numeric_limits<double>::infinity();
  for (double beta : {-1.0, infinite, std::nan("")})
    CHECK_THROWS_AS(static_cast<void>(run_with(beta)), lockstep::ConfigError);
  for (double beta : {1e-50, 1e-39, 1e39})
    if (std::is_same_v<T, float>)
      CHECK_THROWS_AS(static_cast<void>(run_with(beta)), lockstep::ConfigError);
    else
      CHECK(std::isfinite(run_with(beta)));
  CHECK(std::isfinite(run_with(3e-39)));
  CHECK(std::isfinite(run_with(1e38)));
}
