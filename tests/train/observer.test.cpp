// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/observer.hpp>

#include <doctest/doctest.h>

#include <lockstep/train/run_record.hpp>

using namespace lockstep;

TEST_CASE("an observer may leave out what it does not care for") {
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
