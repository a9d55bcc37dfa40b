// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/clock.hpp>

#include <doctest/doctest.h>

#include <thread>

using lockstep::Clock;

TEST_CASE("the clock is monotonic and advances during sleep") {
  auto last = Clock::nanoseconds();
  for (int i = 0; i < 100'000; ++i) {
    auto const now = Clock::nanoseconds();
    REQUIRE(now >= last);
    last = now;
  }
  auto const before = Clock::seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(3));
  CHECK(Clock::seconds() - before >= 0.003 - 1e-6);  // seconds are rounded to some 1e-10 of an uptime of weeks
}

TEST_CASE("the coarse clock equals the clock minus a short delay") {
  auto const before = Clock::seconds();
  CHECK(Clock::coarse_seconds() <= Clock::seconds());
  CHECK(Clock::coarse_seconds() > before - 0.1);  // ticks are 10 ms at most
}

TEST_CASE("a thread's processor time stands still while it sleeps, and passes while it works") {
  auto const began = Clock::thread_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  CHECK(Clock::thread_seconds() - began < 0.05);
  auto const slept = Clock::thread_seconds();
  while (Clock::thread_seconds() - slept < 0.001) {
  }
  CHECK(Clock::thread_seconds() > slept);
}
