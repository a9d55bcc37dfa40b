// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/activation_slope.hpp>

#include <doctest/doctest.h>

#include <lockstep/memory/space.hpp>

using namespace lockstep;

TEST_CASE("a slope is given by its factors, or by a factor of positive inputs") {
  using ActivationSlope = kernel::ActivationSlope<float, HostSpace>;
  float const factor = 0;
  CHECK_FALSE(ActivationSlope{}.given());
  CHECK(ActivationSlope{.factors = {&factor, {1, 1}}}.given());
  CHECK(ActivationSlope{.positive = 1}.given());
}
