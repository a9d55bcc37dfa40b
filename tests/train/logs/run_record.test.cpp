// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/logs/run_record.hpp>

#include <doctest/doctest.h>

#include <array>
#include <span>

#include <lockstep/train/trainer/detail/seconds_of_ranks.hpp>

using namespace lockstep;

TEST_CASE("quantiles cover the steps' seconds, in any order") {
  train::RunRecord record;
  CHECK(record.step_quantile(0.5) == 0);
  record.step_seconds = {5, 1, 4, 2, 3};
  CHECK(record.step_quantile(0) == 1);
  CHECK(record.step_quantile(0.5) == 3);
  CHECK(record.step_quantile(1) == 5);
}

TEST_CASE("samples per second exclude evaluations, and are 0 for a run without time") {
  train::RunRecord record;
  CHECK(record.samples_per_second() == 0);
  record.samples = 30;
  record.training_seconds = 2;
  CHECK(record.samples_per_second() == 15);
}

TEST_CASE("start-up is the extra time of the first steps that take over twice the median") {
  train::RunRecord record;
  record.samples = 640;
  for (double const seconds : {4.0, 1.0, 3.0, 2.0, 1.0, 1.0, 1.0, 1.0, 9.0, 1.0}) record.add_step(seconds, 640);
  CHECK(record.startup().seconds == 5);  // 3 + 2; the ninth step is not in the first half
  CHECK(record.startup().steps == 2);
  CHECK(record.samples_per_second_after_startup() == 640.0 / (24 - 5));
  record.rehearsal_seconds = 2;
  record.rehearsed_shapes = 8;
  record.training_seconds += 2;
  CHECK(record.startup().seconds == 7);
  CHECK(record.startup().shapes == 8);
  CHECK(record.samples_per_second_after_startup() == 640.0 / (24 - 5));
  record.step_seconds.resize(7);
  CHECK(record.startup().steps == 0);
  CHECK(record.startup().seconds == 2);
  CHECK(train::RunRecord{}.samples_per_second_after_startup() == 0);
}

TEST_CASE("each rank's seconds have their own place") {
  struct Session {  // ranks in sequence
    std::array<double, 12> sums{};
    void all_reduce(std::span<double> numbers) {
      REQUIRE(numbers.size() == sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] = sums[i] += numbers[i];
    }
  } session;
  std::vector<train::RankSeconds> all;
  for (int rank : {0, 1, 2}) {
    train::RunRecord record;
    record.world_size = 3;
    record.data_wait_seconds = 1 + rank;
    record.phases = {.forward = 10, .backward = 20, .communication = 2, .optimizer = 3};
    record.phases.pass = 0.5 * rank;
    all = train::detail::seconds_of_ranks(session, record, rank);
  }
  REQUIRE(all.size() == 3);
  for (int rank : {0, 1, 2}) {
    auto const& seconds = all[static_cast<std::size_t>(rank)];
    CHECK(seconds.data_wait == 1 + rank);
    CHECK(seconds.compute == 30 + 0.5 * rank);
    CHECK(seconds.communication == 2);
    CHECK(seconds.optimizer == 3);
  }
}

TEST_CASE("each rank's load has its own place, with a number of processors of 52 bits") {
  struct Session {  // ranks in sequence
    std::array<double, 20> sums{};
    void all_reduce(std::span<double> numbers) {
      REQUIRE(numbers.size() == sums.size());
      for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] = sums[i] += numbers[i];
    }
  } session;
  std::vector<train::RankLoad> all;
  for (int rank : {0, 1}) {
    train::RunRecord record;
    record.world_size = 2;
    record.load = {.compute_seconds = 1.0 + rank, .locked = 7, .cores = 2, .core_set = 4503599627370495 - 2.0 * rank};
    all = train::detail::loads_of_ranks(session, record, rank);
  }
  REQUIRE(all.size() == 2);
  for (int rank : {0, 1}) {
    auto const& load = all[static_cast<std::size_t>(rank)];
    CHECK(load.compute_seconds == 1.0 + rank);
    CHECK(load.locked == 7);
    CHECK(load.queued_seconds == 0);
    CHECK(load.core_set == 4503599627370495 - 2.0 * rank);
  }
}
