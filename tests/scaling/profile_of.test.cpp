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

TEST_CASE("the ranks' loads become averages of a step since the last resume; a rank without processors has none") {
  train::RunRecord record;
  record.steps = 30;
  record.resumed_at = {10};
  record.parameters = 1000;
  record.step_seconds = {0.1, 0.2, 0.3};
  record.ranks = {{.compute = 2}, {.compute = 4, .communication = 6}};
  train::RankLoad const load{.compute_seconds = 1,
                             .deviation_seconds = 0.002,
                             .queued_seconds = 0.4,
                             .loader_seconds = 0.6,
                             .throttled_seconds = 0.2,
                             .observed = 9,
                             .locked = 4,
                             .threads = 3,
                             .cores = 2,
                             .core_set = 77};
  record.loads = {load, load};
  auto const profile = scaling::profile_of(record);
  REQUIRE(profile.ranks.size() == 2);
  auto const& rank = profile.ranks[1];
  CHECK(rank.compute_ms == doctest::Approx(record.ms_per_step(4)));
  CHECK(rank.communication_ms == doctest::Approx(record.ms_per_step(6)));
  CHECK(rank.processor_ms == doctest::Approx(50));
  CHECK(rank.deviation_ms == doctest::Approx(2));
  CHECK(rank.queued_ms == doctest::Approx(20));
  CHECK(rank.loader_ms == doctest::Approx(30));
  CHECK(rank.throttled_ms == doctest::Approx(10));
  CHECK(rank.observed == 9);
  CHECK(rank.locked == 4);
  CHECK(rank.threads == 3);
  CHECK(rank.cores == 2);
  CHECK(rank.core_set == 77);
  CHECK(profile.gradient_bytes == 4000);
  CHECK(profile.fast_step_ms == doctest::Approx(100));
  record.loads[1].cores = 0;
  CHECK(scaling::profile_of(record).ranks.empty());
}

TEST_CASE("a run without steps gives a profile of zeros") { CHECK(scaling::profile_of({}).forward_ms == 0); }
