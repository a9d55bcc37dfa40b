// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/gelu.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::gelu(context, x); };
}  // namespace

TEST_CASE("gradient of the input") { activation_check::check_gradients(apply); }

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}

TEST_CASE("a tensor of the batch gets no gradient") {
  auto const of_input = [](auto& context, auto const&, auto x) {
    x.tokens.slot = nullptr;
    return lockstep::nn::gelu(context, x);
  };
  using namespace layer_check;
  Batch const batch{.rows = 2, .length = 3};
  auto const pass = run<float>(activation_check::NoParameters{}, 33, batch, of_input, 1);
  CHECK(pass.loss == run<float>(activation_check::NoParameters{}, 33, batch, apply, 1).loss);
  for (float g : pass.gradients) CHECK(g == 0);
}
