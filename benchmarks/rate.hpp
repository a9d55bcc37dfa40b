// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <time.h>

#include <algorithm>

namespace lockstep_bench {

/// The denominator of a rate.
enum class Time {
  processor,  ///< the processor time of this process: for single-threaded work, excludes other work on the machine
  wall,       ///< for work of several threads or processes
};

inline double seconds(Time time) {
  timespec now{};
  clock_gettime(time == Time::processor ? CLOCK_PROCESS_CPUTIME_ID : CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

/// Calls f for about `duration` seconds; returns calls per second. The clock is read about every millisecond.
template <class F>
double rate(double duration, Time time, F&& f) {
  long calls = 0, batch = 1;
  auto const start = seconds(time);
  double elapsed = 0;
  while (elapsed < duration) {
    for (long i = 0; i < batch; ++i) f();
    calls += batch;
    elapsed = seconds(time) - start;
    auto const each = elapsed / static_cast<double>(calls);
    batch = std::max(1L, std::min(2 * batch, static_cast<long>(1e-3 / std::max(each, 1e-9))));
  }
  return static_cast<double>(calls) / elapsed;
}

}  // namespace lockstep_bench
