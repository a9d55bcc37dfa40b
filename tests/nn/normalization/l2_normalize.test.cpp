// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/l2_normalize.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const with_epsilon = [](double epsilon) {
  return [epsilon](auto& context, auto const&, auto const& x) {
    return lockstep::nn::l2_normalize(context, x, {.epsilon = epsilon});
  };
};
}  // namespace

TEST_CASE("l2_normalize: gradients of rows longer and shorter than epsilon") {
  for (double epsilon : {1e-12, 100.0}) activation_check::check_gradients(with_epsilon(epsilon));
}

TEST_CASE_TEMPLATE("l2_normalize: bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(with_epsilon(1e-12));
}

TEST_CASE("l2_normalize: an epsilon that is not positive is refused") {
  for (double epsilon : {0.0, -1.0, std::nan("")})
    CHECK_THROWS_WITH_AS(static_cast<void>(layer_check::run<float>(activation_check::NoParameters{}, 3, {.rows = 1},
                                                                   with_epsilon(epsilon), 1)),
                         doctest::Contains("l2_normalize: epsilon is "), lockstep::ConfigError);
}
