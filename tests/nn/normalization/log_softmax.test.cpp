// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/normalization/log_softmax.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"
#include "nn/space_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::log_softmax(context, x); };
}

TEST_CASE("log_softmax: gradients, for tokens and images") {
  activation_check::check_gradients(apply);
  auto const result =
      space_check::trial<double>(activation_check::NoParameters{}, lockstep::Extents<4>{2, 3, 2, 5}, apply).check();
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("log_softmax: bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}
