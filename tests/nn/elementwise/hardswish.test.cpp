// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/hardswish.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const apply = [](auto& context, auto const&, auto const& x) { return lockstep::nn::hardswish(context, x); };
}  // namespace

TEST_CASE("gradient of the input") { activation_check::check_gradients(apply); }

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(apply);
}
