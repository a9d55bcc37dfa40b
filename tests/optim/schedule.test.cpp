// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/schedule.hpp>

#include <doctest/doctest.h>

#include <cmath>

using lockstep::ConfigError;
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

TEST_CASE("the cosine falls from 1 through a half, and no step has the factor 0") {
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

TEST_CASE("a cosine schedule that is all warm-up equals a warm-up") {
  Schedule const schedule{.warmup_steps = 10, .total_steps = 10, .kind = Schedule::Kind::cosine};
  CHECK(schedule.factor(5) == 0.5);
  CHECK(schedule.factor(10) == 1);
  CHECK(schedule.factor(11) == 1);
  CHECK(schedule.factor(12) == 0);
}

TEST_CASE("cosine and linear schedules end at the minimum factor") {
  for (auto kind : {Schedule::Kind::cosine, Schedule::Kind::linear}) {
    Schedule const schedule{.warmup_steps = 2, .total_steps = 10, .kind = kind, .min_factor = 0.25};
    CHECK(schedule.factor(1) == 0.5);
    CHECK(schedule.factor(3) == 1);
    CHECK(schedule.factor(7) == doctest::Approx(0.625));
    CHECK(schedule.factor(11) == 0.25);
    CHECK(schedule.factor(1000) == 0.25);
  }
}

TEST_CASE("a schedule without a length takes the fit's") {
  auto const linear = [](Index total) {
    return Schedule{.warmup_steps = 3, .total_steps = total, .kind = Schedule::Kind::linear};
  };
  for (Index t = 1; t <= 10; ++t) {
    CHECK(linear(0).factor(t, 9) == linear(9).factor(t));
    CHECK(linear(5).factor(t, 9) == linear(5).factor(t));
  }
  CHECK(linear(0).factor(6, 9) != linear(5).factor(6, 9));
}

TEST_CASE("a linear schedule falls by equal steps, and no step has the factor 0") {
  Schedule const schedule{.warmup_steps = 2, .total_steps = 6, .kind = Schedule::Kind::linear};
  CHECK(schedule.factor(1) == 0.5);
  CHECK(schedule.factor(3) == 1);
  CHECK(schedule.factor(4) == 0.75);
  CHECK(schedule.factor(6) == 0.25);
  CHECK(schedule.factor(7) == 0);
  CHECK(schedule.factor(1000) == 0);
}

TEST_CASE("a custom rule follows the warm-up, with the steps of the schedule or else of the fit") {
  auto const falls = [](Index step, Index steps) { return 1 - static_cast<double>(step) / static_cast<double>(steps); };
  Schedule const schedule{.warmup_steps = 2, .rule = falls};
  CHECK(schedule.factor(1, 8) == 0.5);
  CHECK(schedule.factor(2, 8) == 1);
  CHECK(schedule.factor(4, 8) == 0.5);
  CHECK(schedule.factor(8, 8) == 0);
  CHECK(Schedule{.total_steps = 16, .rule = falls}.factor(4, 8) == 0.75);
  CHECK_THROWS_WITH_AS(static_cast<void>(schedule.factor(16, 8)),
                       "schedule.rule gives -1 for step 16 of 8; it must be a finite number of at least 0",
                       ConfigError);
}

TEST_CASE("a custom rule may capture constants, and is copied with its schedule") {
  auto const halves_every = [](Index phase) {
    return Schedule{.rule = [phase](Index step, Index) { return std::exp2(-static_cast<double>((step - 1) / phase)); }};
  };
  auto const schedule = halves_every(3);
  CHECK(schedule.factor(3) == 1);
  CHECK(schedule.factor(4) == 0.5);
  CHECK(halves_every(10).factor(21) == 0.25);
}

TEST_CASE("the inverse square root continues from the warm-up, whatever the length of the run") {
  Schedule const schedule{.warmup_steps = 100, .total_steps = 200, .kind = Schedule::Kind::inverse_square_root};
  CHECK(schedule.factor(50) == 0.5);
  CHECK(schedule.factor(100) == 1);
  CHECK(schedule.factor(400) == 0.5);
  CHECK(schedule.factor(10'000) == doctest::Approx(0.1));
  Schedule const cold{.kind = Schedule::Kind::inverse_square_root};
  CHECK(cold.factor(1) == 1);
  CHECK(cold.factor(4) == 0.5);
}
