// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/schedule.hpp>

#include <doctest/doctest.h>

using lockstep::Index;
using lockstep::optim::Schedule;

TEST_CASE("without settings the factor is 1 from the first step") {
  for (Index t : {1, 2, 1000}) CHECK(Schedule{}.factor(t) == 1);
}

TEST_CASE("the warm-up rises by equal steps and never starts at 0") {
  Schedule const schedule{.warmup_steps = 4};
  CHECK(schedule.factor(1) == 0.25);
  CHECK(schedule.factor(2) == 0.5);
  CHECK(schedule.factor(4) == 1);
  CHECK(schedule.factor(5) == 1);
}

TEST_CASE("the cosine falls from 1 through a half, and wastes no step on 0") {
  Schedule const schedule{.warmup_steps = 2, .total_steps = 10, .kind = Schedule::Kind::cosine};
  CHECK(schedule.factor(1) == 0.5);
  CHECK(schedule.factor(2) == 1);
  CHECK(schedule.factor(3) == 1);
  CHECK(schedule.factor(7) == doctest::Approx(0.5));
  CHECK(schedule.factor(10) > 0);
  CHECK(schedule.factor(11) == 0);
  CHECK(schedule.factor(1000) == 0);
  for (Index t = 4; t <= 10; ++t) CHECK(schedule.factor(t) < schedule.factor(t - 1));
}

TEST_CASE("a cosine that is all warm-up is a warm-up") {
  Schedule const schedule{.warmup_steps = 10, .total_steps = 10, .kind = Schedule::Kind::cosine};
  CHECK(schedule.factor(5) == 0.5);
  CHECK(schedule.factor(10) == 1);
}
