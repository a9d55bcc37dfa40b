// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/training_state.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("parameters are expected outside of an evaluation by averages") {
  train::TrainingState state{.seed = 3};
  CHECK(state.done.steps == 0);
  CHECK_NOTHROW(state.expect_parameters("load"));
  state.averages_in_place = true;
  CHECK_THROWS_WITH_AS(
      state.expect_parameters("load"),
      "load: an evaluation with averaged parameters is running; do it in an observer's step, or after the fit",
      ConfigError);
}
