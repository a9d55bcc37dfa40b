// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/elu.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::elu(context, x); };
}  // namespace

TEST_CASE("gradient of the input") { activation_check::check_gradients(apply); }

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}

TEST_CASE("alpha must be 0 or more") {
  auto const wrong = [](auto& context, auto const&, auto const& x) { return lockstep::nn::elu(context, x, -1); };
  activation_check::Batch const batch{.rows = 1, .length = 1};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(activation_check::run<float>(activation_check::NoParameters{}, 1, batch, wrong, 1)),
      doctest::Contains("elu: alpha is -1; it must be 0 or more"), lockstep::ConfigError);
  auto const infinite = [](auto& context, auto const&, auto const& x) { return lockstep::nn::elu(context, x, 1e39); };
  CHECK_THROWS_AS(
      static_cast<void>(activation_check::run<float>(activation_check::NoParameters{}, 1, batch, infinite, 1)),
      lockstep::ConfigError);
  CHECK_NOTHROW(
      static_cast<void>(activation_check::run<double>(activation_check::NoParameters{}, 1, batch, infinite, 1)));
}
