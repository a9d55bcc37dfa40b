// SPDX-License-Identifier: Apache-2.0
// Estimates from given profiles; verdict.test.cpp injects causes into runs.
#include <lockstep/scaling/lost_time.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/scaling/bottleneck.hpp>

using namespace lockstep;
using scaling::Cause;
using scaling::RankStep;
using scaling::StepProfile;

namespace {

/// Two ranks on two cores whose steps of 10 ms lose nothing.
StepProfile healthy() {
  RankStep const rank{.data_ms = 0.1,
                      .compute_ms = 9,
                      .communication_ms = 0.4,
                      .optimizer_ms = 0.4,
                      .processor_ms = 9,
                      .deviation_ms = 0.1,
                      .cores = 2,
                      .core_set = 7};
  return {.shards = 2,
          .effective_batch_size = 32,
          .samples_per_second = 3200,
          .data_wait_ms = 0.1,
          .communication_ms = 0.4,
          .optimizer_ms = 0.4,
          .pass_ms = 9,
          .ranks = {rank, rank},
          .gradient_bytes = 4e6};
}

std::string first(StepProfile const& profile) {
  auto const lost = find_lost_time(profile);
  return lost.empty() ? "none" : name(lost[0].cause);
}
std::string cause(StepProfile const& profile) { return scaling::find_bottleneck(profile).cause; }

}  // namespace

TEST_CASE("a healthy run loses nothing, and neither does a run without the ranks' figures") {
  CHECK(find_lost_time(healthy()).empty());
  CHECK(find_lost_time(StepProfile{.communication_ms = 9, .pass_ms = 1}).empty());
  CHECK(cause(healthy()) == "none");
}

TEST_CASE("data that is slow on all ranks is slow data; locks in the loader's threads make it lock contention") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.data_ms = 9;
  auto const lost = find_lost_time(profile);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].cause == Cause::slow_data);
  CHECK(lost[0].ms == 9);
  CHECK(lost[0].summary.starts_with("training waits for data during 49 % of a step: more --num-workers"));
  profile.ranks[0].observed = 100, profile.ranks[0].locked = 60;
  CHECK(first(profile) == "lock contention");
  CHECK(find_lost_time(profile)[0].summary.find("a lock in 60 % of 100 looks") != std::string::npos);
  profile.ranks[0].locked = 10;
  CHECK(first(profile) == "slow data");
  profile.ranks[0].observed = 3, profile.ranks[0].locked = 3;  // too few looks
  CHECK(first(profile) == "slow data");
  for (auto& rank : profile.ranks) rank.loader_ms = 10;  // its threads had no processor for the rest
  CHECK(first(profile) == "none");
  for (auto& rank : profile.ranks) rank.loader_ms = 14;
  CHECK(first(profile) == "slow data");
  CHECK(find_lost_time(profile)[0].ms == doctest::Approx(14 - 9.4));
}

TEST_CASE("a rank that works longer than the others is a slow rank, by its processor time or its data") {
  auto profile = healthy();
  profile.ranks[1].processor_ms = profile.ranks[1].compute_ms = 15;
  CHECK(first(profile) == "slow rank");
  CHECK(find_lost_time(profile)[0].summary.starts_with("the others wait for rank 1, whose own work takes 15.5 ms"));
  profile.ranks[1].processor_ms = 9;  // it only had no processor
  profile.ranks[1].queued_ms = 6;
  CHECK(first(profile) == "other programs");
  profile = healthy();
  profile.ranks[0].data_ms = 8;
  CHECK(first(profile) == "slow rank");
}

TEST_CASE("a training thread that waits for other threads of its rank computes meanwhile") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.threads = 2, rank.cores = 4, rank.processor_ms = 1, rank.optimizer_ms = 1;
  CHECK(first(profile) == "none");
  for (auto& rank : profile.ranks) rank.threads = 1;  // it computes for 1 ms only
  CHECK(first(profile) == "small batch");
}

TEST_CASE("more training threads than processors are oversubscription if they wait for one") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.threads = 2;
  CHECK(first(profile) == "none");
  for (auto& rank : profile.ranks) rank.queued_ms = 9, rank.compute_ms = 18;
  CHECK(first(profile) == "oversubscription");
  CHECK(find_lost_time(profile)[0].summary.starts_with("4 training threads take turns on 2 processors"));
  profile.ranks[1].core_set = 8;  // each rank has two processors of its own
  CHECK(first(profile) == "other programs");
  profile.ranks[1].core_set = 7;
  for (auto& rank : profile.ranks) rank.cores = 4;
  CHECK(first(profile) == "other programs");
}

TEST_CASE("a quota that stops the run is named") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.throttled_ms = 20, rank.compute_ms = 19, rank.queued_ms = 10;
  auto const lost = find_lost_time(profile);
  REQUIRE(lost.size() == 1);
  CHECK(lost[0].cause == Cause::processor_quota);
  CHECK(lost[0].ms == 10);  // the sum over two processors is 20
}

TEST_CASE("other programs are a cause, but another cause that the run can change comes before them") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.compute_ms = 30, rank.queued_ms = 21, rank.communication_ms = 15;
  CHECK(cause(profile) == "other programs");
  for (auto& rank : profile.ranks) rank.data_ms = 9;
  CHECK(find_lost_time(profile)[0].cause == Cause::other_programs);
  CHECK(cause(profile) == "slow data");
  auto const summary = scaling::find_bottleneck(profile).summary;
  CHECK(summary.find("; training waits for data") != std::string::npos);
  CHECK(summary.find("; besides, training threads wait") != std::string::npos);
}

TEST_CASE("batches of unequal work make ranks wait for each other") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.deviation_ms = 6, rank.communication_ms = 4;
  CHECK(first(profile) == "uneven batches");
  CHECK(find_lost_time(profile)[0].ms == doctest::Approx(6 * scaling::detail::expected_maximum(2)));
  for (auto& rank : profile.ranks) rank.communication_ms = 0.1;  // no rank waits
  CHECK(first(profile) == "none");
}

TEST_CASE("work that each step repeats is due to a small batch, or to a small model if it has few gradients") {
  auto profile = healthy();
  for (auto& rank : profile.ranks) rank.optimizer_ms = 3, rank.communication_ms = 4;
  CHECK(first(profile) == "small batch");
  CHECK(find_lost_time(profile)[0].summary.starts_with(
      "communication and update of all parameters take 44 % of a step for a batch of 16 per device"));
  profile.gradient_bytes = 1000;
  CHECK(first(profile) == "small model");
  profile.fast_step_ms = 12;  // a tenth of the steps sends nothing for long
  CHECK(first(profile) == "small batch");
  profile.fast_step_ms = 0;
  for (auto& rank : profile.ranks) rank.optimizer_ms = 5;  // an update this long is no small model's
  CHECK(first(profile) == "small batch");
  profile.ranks.pop_back();
  CHECK(find_lost_time(profile)[0].summary.starts_with("the update of all parameters takes"));
}
