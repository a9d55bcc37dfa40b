// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/learning_rate_scaling.hpp>

#include <doctest/doctest.h>

using lockstep::optim::factor;
using lockstep::optim::LearningRateScaling;

TEST_CASE("the factor follows effective over base batch size") {
  CHECK(factor(LearningRateScaling::none, 128, 32) == 1);
  CHECK(factor(LearningRateScaling::linear, 128, 32) == 4);
  CHECK(factor(LearningRateScaling::sqrt, 128, 32) == 2);
  CHECK(factor(LearningRateScaling::linear, 16, 32) == 0.5);
  CHECK(factor(LearningRateScaling::sqrt, 32, 32) == 1);
}
