// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/comm/operation.hpp>

/// A rank whose all-reduces take latency_seconds + bytes * seconds_per_byte on a simulated clock, one at a time, in the
/// order of their starts, and no computing time. Reduces nothing.
struct DelayedCommunicator {
  double latency_seconds, seconds_per_byte;
  double now = 1;  // 0 means never
  double waited = 0, busy = 0;
  double first_takes = 0;  // more, because the memory is new to it
  double free_at = 0;      // when the last started one is complete

  /// Advances the clock for computation.
  void compute(double seconds) { now += seconds; }

  void start(lockstep::comm::CollectiveOperation& operation) {
    auto const bytes = static_cast<double>(operation.count) * static_cast<double>(lockstep::size_of(operation.type));
    auto const takes = latency_seconds + bytes * seconds_per_byte + (busy == 0 ? first_takes : 0.0);
    operation.started_seconds = now;
    operation.finished_seconds = free_at = std::max(now, free_at) + takes;
    busy += takes;
  }
  void progress() {}
  void wait(lockstep::comm::CollectiveOperation const& operation) { wait_until(operation.finished_seconds); }
  void finish() { wait_until(free_at); }
  void wait_until(double then) {
    waited += std::max(0.0, then - now);
    now = std::max(now, then);
  }
};
