// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/layerwise_step.hpp>

#include <doctest/doctest.h>

#include <limits>

// tests/optim/lamb.test.cpp tests the step; layerwise_step.test.cu compares it with the device's.

TEST_CASE("the ratio of norms is 1 if either norm is zero") {
  using lockstep::kernel::detail::trust_ratio;
  CHECK(trust_ratio(9, 4) == 1.5);
  CHECK(trust_ratio(0, 4) == 1);
  CHECK(trust_ratio(9, 0) == 1);
  CHECK(trust_ratio(9, std::numeric_limits<double>::infinity()) == 0);
}
