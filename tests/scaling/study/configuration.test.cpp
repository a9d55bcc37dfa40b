// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/scaling/study/configuration.hpp>

#include "scaling/study/saved_runs.hpp"

using namespace lockstep;
using namespace lockstep_test;
using scaling::Configuration, scaling::StudyRun;

namespace {
Configuration repeated(TemporaryFolder const& folder, std::vector<SavedExample> const& examples) {
  std::vector<StudyRun> runs;
  for (auto const& example : examples) {
    example.save(folder / "run");
    runs.push_back(StudyRun::read(folder / "run", 0));
  }
  return Configuration::of(std::move(runs));
}
}  // namespace

TEST_CASE("repeated runs have a mean and a spread, and a speed-up over one device") {
  TemporaryFolder const folder;
  auto alone = repeated(folder, {{.speed = 900}, {.speed = 1100}});
  auto two = repeated(folder, {{.parallel = "dp", .devices = 2, .speed = 1400, .accuracy = 0.8},
                               {.parallel = "dp", .devices = 2, .speed = 1600, .accuracy = 0.9}});
  CHECK(alone.label() == "single");
  CHECK(two.label() == "dp 2");
  CHECK(two.samples_per_second.mean == doctest::Approx(1500));
  CHECK(two.samples_per_second.deviation == doctest::Approx(100 * std::sqrt(2)));
  CHECK(two.metric.mean == doctest::Approx(0.85));
  CHECK(two.first_device_bytes == 12e6);
  CHECK(two.other_devices_bytes == 8e6);
  CHECK(std::isnan(alone.other_devices_bytes));
  two.compare_with(alone.profile, alone.samples_per_second);
  CHECK(two.speed_up.mean == doctest::Approx(1.5));
  CHECK(two.efficiency.mean == doctest::Approx(0.75));
  CHECK(two.speed_up.deviation == doctest::Approx(1.5 * std::sqrt(2) * std::hypot(1.0 / 15, 1.0 / 10)));
  alone.compare_with(alone.profile, alone.samples_per_second);
  CHECK(alone.speed_up.mean == 1.0);
  CHECK(alone.speed_up.deviation == 0.0);
}

TEST_CASE("a prediction is a configuration without runs, memory and metric") {
  scaling::Prediction prediction;
  prediction.ranks = 8;
  prediction.samples_per_second = 4000;
  prediction.pass_seconds = 0.05;
  auto const one = Configuration::predicted_from("ddp", prediction, 256, 1000);
  CHECK(one.predicted);
  CHECK(one.label() == "ddp 8");
  CHECK(one.epoch_seconds.mean == doctest::Approx(0.25));
  CHECK(one.profile.step_ms() == doctest::Approx(64));
  CHECK_FALSE(one.metric.is_known());
  CHECK_FALSE(Configuration{}.has_speed());
}
