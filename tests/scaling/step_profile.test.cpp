// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/step_profile.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a step takes its samples over samples per second") {
  scaling::StepProfile profile{.shards = 2, .threads = 3, .effective_batch_size = 64};
  CHECK(profile.step_ms() == 0);
  profile.samples_per_second = 640;
  CHECK(profile.step_ms() == 100);
  CHECK(profile.processors() == 6);
  profile.samples_per_step = 16;  // if batches vary
  CHECK(profile.step_ms() == 25);
}
