// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/observer.hpp>

#include <doctest/doctest.h>

#include <lockstep/train/logs/run_record.hpp>

using namespace lockstep;

TEST_CASE("every step is logged up to the hundredth, then every tenth and so on, at a hundredth of the run") {
  auto const logged = [](Index step, Index steps) {
    return train::StepReport{.step = step, .steps = steps}.is_logged();
  };
  auto const count = [&](Index until, Index steps) {
    Index all = 0;
    for (Index step = 1; step <= until; ++step) all += logged(step, steps);
    return all;
  };
  constexpr Index endless = Index{1} << 48;
  CHECK(count(100, endless) == 100);
  CHECK(count(1000, endless) == 190);
  CHECK(count(10'000, endless) == 280);
  CHECK(count(150'000, 150'000) == 100 + 3 * 90 + 33);  // 1500 apart at the end
  for (Index steps : {1, 99, 150, 10'007}) CHECK(logged(steps, steps));
  CHECK_FALSE(logged(123, endless));
}

TEST_CASE("an observer may omit functions") {
  struct Steps : train::Observer {
    int steps = 0;
    void step(train::StepReport const&) override { ++steps; }
  } steps;
  train::Observer& observer = steps;
  observer.start({});
  observer.step({});
  observer.evaluation({});
  observer.finish({});
  CHECK(steps.steps == 1);
}
