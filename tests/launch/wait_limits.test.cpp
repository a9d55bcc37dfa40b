// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/wait_limits.hpp>

#include <doctest/doctest.h>

TEST_CASE("a wait warns long before it gives up") {
  lockstep::launch::WaitLimits const limits;
  CHECK(limits.warn_seconds == 10);
  CHECK(limits.stall_seconds >= 10 * limits.warn_seconds);
}
