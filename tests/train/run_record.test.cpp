// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/run_record.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("quantiles are those of the steps' seconds, in whatever order they came") {
  train::RunRecord record;
  CHECK(record.step_quantile(0.5) == 0);
  record.step_seconds = {5, 1, 4, 2, 3};
  CHECK(record.step_quantile(0) == 1);
  CHECK(record.step_quantile(0.5) == 3);
  CHECK(record.step_quantile(1) == 5);
}

TEST_CASE("samples per second leave evaluations out, and are 0 for a run without time") {
  train::RunRecord record;
  CHECK(record.samples_per_second() == 0);
  record.samples = 30;
  record.training_seconds = 2;
  CHECK(record.samples_per_second() == 15);
}
