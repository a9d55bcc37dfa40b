// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/speed_up.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;
using scaling::SpeedUp;
using scaling::StepProfile;

namespace {

// 64 samples in 100 ms.
constexpr StepProfile alone{.effective_batch_size = 64,
                            .samples_per_second = 640,
                            .data_wait_ms = 0,
                            .forward_ms = 30,
                            .backward_ms = 60,
                            .communication_ms = 0,
                            .optimizer_ms = 10};

bool contains(std::string const& text, std::string const& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("half of every phase on two devices is a perfect speed-up") {
  StepProfile const together{.shards = 2,
                             .effective_batch_size = 64,
                             .samples_per_second = 1280,
                             .data_wait_ms = 0,
                             .forward_ms = 15,
                             .backward_ms = 30,
                             .communication_ms = 0,
                             .optimizer_ms = 5};
  SpeedUp const speed_up(alone, together);
  CHECK(speed_up.factor() == 2);
  CHECK(speed_up.efficiency() == 1);
  CHECK(speed_up.bound() == "nothing");
  CHECK(contains(speed_up.summary(), "2 devices train 2.00 times as fast as one, 100 %"));
}

TEST_CASE("a baseline of several devices is described as several, one device as one") {
  StepProfile two = alone;
  two.shards = 2;
  two.samples_per_second *= 2;
  CHECK(contains(SpeedUp(two, two).summary(), "2 devices train 1.00 times as fast as the baseline's 2, 100 %"));
  CHECK(contains(SpeedUp(alone, alone).summary(), "1 device trains 1.00 times as fast as the baseline's one, 100 %"));
  CHECK(contains(SpeedUp(two, alone).summary(), "1 device trains 0.50 times as fast as the baseline's 2, 100 %"));
}

TEST_CASE("the phase with the largest loss is named, with its cost") {
  StepProfile together{.shards = 2,
                       .effective_batch_size = 64,
                       .samples_per_second = 1000,  // 64 ms per step
                       .data_wait_ms = 0,
                       .forward_ms = 18,
                       .backward_ms = 36,
                       .communication_ms = 2,
                       .optimizer_ms = 8};
  SpeedUp const compute(alone, together);
  CHECK(compute.bound() == "compute");
  CHECK(contains(compute.summary(), "20 % more time for each sample"));
  CHECK(contains(compute.summary(), "9.0 of a step's 64.0 ms"));
  CHECK(contains(compute.summary(), "optimizer (3.0 of a step's 64.0 ms), communication (2.0"));
  CHECK_FALSE(contains(compute.summary(), "data"));

  together.communication_ms = 30;
  CHECK(SpeedUp(alone, together).bound() == "communication");
  together.data_wait_ms = 40;
  CHECK(SpeedUp(alone, together).bound() == "data");
  together.optimizer_ms = 60;
  CHECK(SpeedUp(alone, together).bound() == "optimizer");
}

TEST_CASE("the complete sentence, with passes in one piece and a larger batch on four devices") {
  auto one = alone;
  one.forward_ms = 20, one.backward_ms = 30, one.pass_ms = 40;
  StepProfile four{.shards = 4,
                   .effective_batch_size = 128,  // half a single step for each
                   .samples_per_second = 128 / 0.07,
                   .data_wait_ms = 0.5,
                   .forward_ms = 12,
                   .backward_ms = 18,
                   .communication_ms = 6,
                   .optimizer_ms = 8,
                   .pass_ms = 24};
  CHECK(SpeedUp(one, four).summary() ==
        "4 devices train 2.86 times as fast as one, 71 % of what the processors could give: it is bound by compute, "
        "because forward and backward take 20 % more time for each sample when all processors work and share caches, "
        "memory and clock with each other and with other programs (9.0 of a step's 70.0 ms); next: "
        "communication (6.0 of a step's 70.0 ms), optimizer (3.0 of a step's 70.0 ms).");
  four.communication_ms = 20;
  CHECK(contains(SpeedUp(one, four).summary(), "it is bound by communication that backward does not hide"));
  four.optimizer_ms = 30;
  CHECK(contains(SpeedUp(one, four).summary(), "it is bound by the optimizer"));
  four.data_wait_ms = 30;
  CHECK(contains(SpeedUp(one, four).summary(), "it is bound by data"));
  CHECK(
      contains(SpeedUp(alone, alone).summary(), "100 % of what the processors could give: no phase of the step loses"));
}

TEST_CASE("a run without measurements gives no conclusions") {
  CHECK(SpeedUp(StepProfile{}, alone).factor() == 0);
  CHECK(contains(SpeedUp(StepProfile{}, alone).summary(), "compute, because forward and backward take 0 % more"));
}

TEST_CASE("runs with other batch sizes and thread counts are normalized") {
  auto twice = alone;  // equal speed in steps of 128 samples
  twice.effective_batch_size = 128;
  twice.forward_ms *= 2, twice.backward_ms *= 2, twice.optimizer_ms *= 2;
  SpeedUp const same(alone, twice);
  CHECK(same.factor() == 1);
  CHECK(same.bound() == "nothing");

  auto two_threads = alone;  // two threads on one device against one thread on each of two
  two_threads.threads = 2;
  auto two_devices = alone;
  two_devices.shards = 2;
  CHECK(SpeedUp(two_threads, two_devices).efficiency() == 1);
}

TEST_CASE("a slowdown by more devices is reported") {
  StepProfile const one{.shards = 1, .effective_batch_size = 64, .samples_per_second = 100, .forward_ms = 600};
  StepProfile const two{.shards = 2, .effective_batch_size = 64, .samples_per_second = 80, .forward_ms = 700};
  CHECK(SpeedUp(one, two).summary().starts_with(
      "more devices are slower: 2 devices train 0.80 times as fast as one, 40 %"));
}
