// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/bottleneck.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a rank that the others wait for is named, with its slow phase; a small lag is not") {
  scaling::StepProfile profile{.communication_ms = 60,
                               .pass_ms = 40,
                               .slowest = {.rank = 3, .phase = "data", .ms = 70.25, .min_ms = 1.5, .lag_ms = 60}};
  auto const bottleneck = scaling::find_bottleneck(profile);
  CHECK(bottleneck.bound == "communication");
  CHECK(bottleneck.summary.ends_with(
      "60 % of a step; the others wait for rank 3, whose data takes 70.2 ms of a step, while "
      "the fastest rank's takes 1.5 ms"));
  profile.slowest.lag_ms = 21;
  CHECK(scaling::find_bottleneck(profile).summary.find("wait for rank 3") != std::string::npos);
  profile.slowest.lag_ms = 19;
  CHECK(scaling::find_bottleneck(profile).summary.ends_with("a larger batch per device would make waits rarer"));
}

TEST_CASE("a run is bound by the longest phase of its steps") {
  using P = scaling::StepProfile;
  CHECK(scaling::find_bottleneck(P{.forward_ms = 3, .backward_ms = 3, .communication_ms = 4}).bound == "compute");
  CHECK(scaling::find_bottleneck(P{.forward_ms = 1, .backward_ms = 2, .communication_ms = 4}).bound == "communication");
  CHECK(scaling::find_bottleneck(P{.communication_ms = 4, .pass_ms = 5}).bound == "compute");
  CHECK(scaling::find_bottleneck(P{.forward_ms = 1, .optimizer_ms = 4}).bound == "optimizer");
  auto const data = scaling::find_bottleneck(P{.data_wait_ms = 3, .forward_ms = 1});
  CHECK(data.bound == "data");
  CHECK(data.summary.find("bound by data, which takes 75 % of a step") != std::string::npos);
  CHECK(scaling::find_bottleneck(P{}).summary.find("0 %") != std::string::npos);
  CHECK(scaling::find_bottleneck(P{}).bound == "none");
}

namespace {

/// A step of 1 ms on a GPU: 0.9 ms of forward and backward with 100 kernels, all queued as CUDA graphs.
scaling::StepProfile on_gpu() {
  return {.samples_per_step = 32,
          .samples_per_second = 32e3,
          .optimizer_ms = 0.1,
          .pass_ms = 0.9,
          .gpu = {.replayed = 1, .queue_ms = 0.05, .busy_ms = 0.88, .kernels = 100}};
}

}  // namespace

TEST_CASE("a GPU with short kernels is bound by small kernels, with their number and mean time") {
  auto const bottleneck = scaling::find_bottleneck(on_gpu());
  CHECK(bottleneck.bound == "small kernels");
  CHECK(bottleneck.summary ==
        "the run is bound by small kernels: forward and backward take 90 % of a step; the 100 kernels of a step take "
        "8.8 us on average; a larger --batch-size has larger kernels, which use more of the GPU");
  auto large = on_gpu();
  large.gpu.kernels = 80;  // 11 us each, and no rates are known
  CHECK(scaling::find_bottleneck(large).bound == "compute");
}

TEST_CASE("a GPU that waits for the host is bound by launches, within passes or between them") {
  auto waits = on_gpu();
  waits.gpu = {.replayed = 0.1, .queue_ms = 0.85, .busy_ms = 0.4, .kernels = 100};
  auto const bottleneck = scaling::find_bottleneck(waits);
  CHECK(bottleneck.bound == "launches");
  CHECK(
      bottleneck.summary.find("the GPU waits for the host during 0.50 of the 1.00 ms of a step, which has 100 kernels; "
                              "10 % of the passes were replayed as CUDA graphs; batches with fewer different shapes") !=
      std::string::npos);
  waits.gpu.busy_ms = 0.66;
  CHECK(scaling::find_bottleneck(waits).bound == "small kernels");
  waits.gpu.busy_ms = 0;  // not measured: the host takes nearly all of the time to queue the work
  CHECK(scaling::find_bottleneck(waits).bound == "launches");
  CHECK(scaling::find_bottleneck(waits).summary.find("the host takes 0.85 of their 0.90 ms to queue them") !=
        std::string::npos);
  waits.gpu.queue_ms = 0.7;
  CHECK(scaling::find_bottleneck(waits).bound == "small kernels");
  auto between = on_gpu();
  between.samples_per_second = 20e3;  // 1.6 ms per step, 1 ms of it in phases
  CHECK(scaling::find_bottleneck(between).bound == "launches");
  CHECK(scaling::find_bottleneck(between).summary.ends_with("; a larger --batch-size makes fewer and longer steps"));
}

TEST_CASE("a GPU with long kernels is bound by arithmetic or memory bandwidth, whichever takes longer at its peak") {
  auto busy = on_gpu();
  busy.gpu = {.replayed = 1, .queue_ms = 0.05, .busy_ms = 0.9, .kernels = 30, .product_ms = 0.5, .memory_ms = 0.2};
  auto bottleneck = scaling::find_bottleneck(busy);
  CHECK(bottleneck.bound == "arithmetic");
  CHECK(
      bottleneck.summary.find("of their 0.90 ms, matrix products would take 0.50 ms at the GPU's peak rate, and memory "
                              "accesses about 0.20 ms; --precision bf16") != std::string::npos);
  busy.gpu.product_ms = 0.1;
  bottleneck = scaling::find_bottleneck(busy);
  CHECK(bottleneck.bound == "memory bandwidth");
  CHECK(bottleneck.summary.find("most kernels reach neither limit") != std::string::npos);
  busy.gpu.memory_ms = 0.3;
  CHECK(scaling::find_bottleneck(busy).summary.find("neither") == std::string::npos);
}

TEST_CASE("a GPU that communicates longer than it computes is bound by communication, and lagging ranks are named") {
  auto profile = on_gpu();
  profile.communication_ms = 1;
  CHECK(scaling::find_bottleneck(profile).bound == "communication");
  profile = on_gpu();
  profile.slowest = {.rank = 1, .phase = "compute", .ms = 1.5, .min_ms = 0.9, .lag_ms = 0.6};
  auto const bottleneck = scaling::find_bottleneck(profile);
  CHECK(bottleneck.bound == "small kernels");
  CHECK(bottleneck.summary.find("us on average; the others wait for rank 1") != std::string::npos);
}
