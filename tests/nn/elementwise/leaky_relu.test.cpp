// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/leaky_relu.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"
#include "nn/space_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::leaky_relu(context, x, 0.3); };
auto const default_slope = [](auto& context, auto const&, auto const& x) {
  return lockstep::nn::leaky_relu(context, x);
};
}  // namespace

TEST_CASE("gradient of the input, for sequences and images") {
  activation_check::check_gradients(apply);
  auto const result =
      space_check::trial<double>(activation_check::NoParameters{}, lockstep::Extents<4>{2, 4, 3, 5}, apply).check();
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}

TEST_CASE("the slope is 0.01 by default") {
  using namespace activation_check;
  auto const explicit_slope = [](auto& context, auto const&, auto const& x) {
    return nn::leaky_relu(context, x, 0.01);
  };
  Batch const batch{.rows = 3, .length = 2};
  CHECK(run<float>(NoParameters{}, 5, batch, default_slope, 1) ==
        run<float>(NoParameters{}, 5, batch, explicit_slope, 1));
  CHECK_FALSE(run<float>(NoParameters{}, 5, batch, default_slope, 1) == run<float>(NoParameters{}, 5, batch, apply, 1));
}

TEST_CASE("a slope below 0 or beyond the type is refused") {
  using namespace activation_check;
  auto const negative_slope = [](auto& context, auto const&, auto const& x) {
    return nn::leaky_relu(context, x, -0.5);
  };
  CHECK_THROWS_WITH_AS(static_cast<void>(run<float>(NoParameters{}, 5, {}, negative_slope, 1)),
                       doctest::Contains("leaky_relu: the slope is -0.5; it must be 0 or more"), lockstep::ConfigError);
  auto const infinite = [](auto& context, auto const&, auto const& x) { return nn::leaky_relu(context, x, 1e39); };
  CHECK_THROWS_AS(static_cast<void>(run<float>(NoParameters{}, 5, {}, infinite, 1)), lockstep::ConfigError);
}
