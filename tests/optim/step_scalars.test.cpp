// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/step_scalars.hpp>

#include <doctest/doctest.h>

#include <lockstep/memory/space.hpp>

using Scalars = lockstep::optim::StepScalars<lockstep::HostSpace>;

TEST_CASE("a step counts unless it is skipped or its batch had no samples") {
  CHECK(Scalars{}.active());
  CHECK_FALSE(Scalars{.weight = 0}.active());
  CHECK_FALSE(Scalars{.skip = true}.active());
}

TEST_CASE("gradients are scaled by clip over weight, and by default not at all") {
  CHECK(Scalars{}.gradient_scale() == 1);
  CHECK(Scalars{.weight = 8, .clip = 0.5}.gradient_scale() == 0.0625);
  CHECK(Scalars{.weight = 8, .clip = 0.5, .loss_scale = 1024}.gradient_scale() == 0.0625 / 1024);
}
