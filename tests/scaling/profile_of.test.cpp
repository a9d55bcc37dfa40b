// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/profile_of.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a profile is the record's seconds over its steps") {
  train::RunRecord record;
  record.world_size = 2;
  record.devices = 3;
  record.threads = 4;
  record.effective_batch_size = 60;
  record.steps = 10;
  record.samples = 600;
  record.training_seconds = 2;
  record.phases = {.forward = 0.2, .backward = 0.5, .communication = 0.1, .optimizer = 0.4};
  record.data_wait_seconds = 0.3;
  auto const profile = scaling::profile_of(record);
  CHECK(profile.shards == 6);
  CHECK(profile.processors() == 24);
  CHECK(profile.effective_batch_size == 60);
  CHECK(profile.samples_per_second == doctest::Approx(300));
  CHECK(profile.step_ms() == doctest::Approx(200));
  CHECK(profile.forward_ms == doctest::Approx(20));
  CHECK(profile.backward_ms == doctest::Approx(50));
  CHECK(profile.communication_ms == doctest::Approx(10));
  CHECK(profile.optimizer_ms == doctest::Approx(40));
  CHECK(profile.data_wait_ms == doctest::Approx(30));
  record.effective_batch_size = 500;  // the largest, if batches vary
  CHECK(scaling::profile_of(record).step_ms() == doctest::Approx(200));
}

TEST_CASE("the slowest rank is the one with the most work of its own, without waiting") {
  train::RunRecord record;
  record.steps = 10;
  record.ranks = {{.data_wait = 0.1, .compute = 1, .communication = 5},
                  {.data_wait = 0.2, .compute = 3, .optimizer = 1},
                  {.data_wait = 2, .compute = 0.5, .communication = 9}};
  auto const slowest = scaling::profile_of(record).slowest;
  CHECK(slowest.rank == 1);
  CHECK(slowest.lag_ms == doctest::Approx(310));
  CHECK(std::string(slowest.phase) == "compute");
  CHECK(slowest.ms == doctest::Approx(300));
  CHECK(slowest.min_ms == doctest::Approx(100));
  record.ranks = {{.data_wait = 1, .compute = 5, .optimizer = 2},
                  {.data_wait = 0, .compute = 6, .optimizer = 1},
                  {.data_wait = 0.2, .compute = 4.5, .optimizer = 0.5}};
  auto const other = scaling::profile_of(record).slowest;  // compared with rank 2, which has the least work
  CHECK(other.rank == 0);
  CHECK(other.lag_ms == doctest::Approx(280));
  CHECK(std::string(other.phase) == "optimizer");
  CHECK(other.ms == doctest::Approx(200));
  CHECK(other.min_ms == doctest::Approx(50));
  record.ranks.resize(1);
  CHECK(scaling::profile_of(record).slowest.lag_ms == 0);
}

TEST_CASE("a run without steps gives a profile of zeros") { CHECK(scaling::profile_of({}).forward_ms == 0); }
