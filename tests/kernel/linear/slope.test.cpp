// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/slope.hpp>

#include <doctest/doctest.h>

#include <lockstep/memory/space.hpp>

using namespace lockstep;

TEST_CASE("a slope is given by its factors, or by a factor of positive inputs") {
  using Slope = kernel::Slope<float, HostSpace>;
  float const factor = 0;
  CHECK_FALSE(Slope{}.given());
  CHECK(Slope{.factors = {&factor, {1, 1}}}.given());
  CHECK(Slope{.positive = 1}.given());
}
