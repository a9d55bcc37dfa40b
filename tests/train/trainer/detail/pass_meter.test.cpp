// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/pass_meter.hpp>

#include <doctest/doctest.h>

using lockstep::Clock;
using lockstep::train::detail::PassMeter;

namespace {
/// Makes steps of so many passes of `seconds`, in each of which the thread works.   @returns the measured steps
int steps(PassMeter& meter, int count, int passes, double seconds, double work = 0) {
  int measured = 0;
  for (int i = 0; i < count; ++i) {
    measured += meter.measures();
    for (int pass = 0; pass < passes; ++pass) {
      meter.begin_pass();
      for (auto const until = Clock::thread_seconds() + work; work > 0 && Clock::thread_seconds() < until;) {
      }
      meter.end_pass(seconds);
    }
    meter.end_step();
  }
  return measured;
}
}  // namespace

TEST_CASE("every long step is measured, and of short steps as many as take 0.1 % of the time") {
  PassMeter meter;
  CHECK(steps(meter, 8, 1, 1) == 0);
  CHECK(meter.processor_seconds() == 0);
  meter.start();
  CHECK(steps(meter, 8, 1, 2e-3) == 8);
  CHECK(steps(meter, 12, 1, 0.4e-3) == 4);  // 1.1 ms / 0.4 ms = 2.75: two of three are left out
  CHECK(steps(meter, 24, 4, 0.1e-3) == 2);  // four passes have four pairs of reads: 11 are left out
  CHECK(steps(meter, 160, 1, 1e-9) == 10);  // one of 16, however short
}

TEST_CASE("the processor time of all steps is estimated from the measured ones") {
  PassMeter meter;
  meter.start();
  constexpr double work = 20e-6;
  auto const began = Clock::thread_seconds();
  auto const measured = steps(meter, 60, 1, 0.4e-3, work);
  auto const used = Clock::thread_seconds() - began;
  CHECK(measured == 20);
  CHECK(meter.processor_seconds() >= 60 * work);
  CHECK(meter.processor_seconds() <= 3 * used);  // of all 60 steps, even if the measured ones have all of the time
  CHECK(meter.deviation_seconds() >= 0);
}
