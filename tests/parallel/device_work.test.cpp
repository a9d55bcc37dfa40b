// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/device_work.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("device work is averaged over optimizer steps, busy time over the measured passes") {
  parallel::DeviceWork const work{.passes = 20,  // two for each step
                                  .replays = 15,
                                  .queue_seconds = 0.04,
                                  .measured = 2,
                                  .busy_seconds = 0.006,
                                  .kernels = 2000,
                                  .product_seconds = 0.01,
                                  .memory_seconds = 0.02};
  auto const step = work.per_step(10);
  CHECK(step.replayed == 0.75);
  CHECK(step.queue_ms == doctest::Approx(4));
  CHECK(step.busy_ms == doctest::Approx(6));
  CHECK(step.kernels == 200);
  CHECK(step.product_ms == doctest::Approx(1));
  CHECK(step.memory_ms == doctest::Approx(2));
}

TEST_CASE("device work without steps, passes or measured passes is zero") {
  CHECK(parallel::DeviceWork{.passes = 3, .kernels = 9}.per_step(0).kernels == 0);
  CHECK(parallel::DeviceWork{.queue_seconds = 1}.per_step(2).queue_ms == 0);
  CHECK(parallel::DeviceWork{.passes = 3, .kernels = 9}.per_step(3).busy_ms == 0);
}
