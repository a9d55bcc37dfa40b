// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <time.h>

#include <cstdint>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Monotonic time since an arbitrary start (CLOCK_MONOTONIC). Comparable between all threads and processes of one
/// machine until it reboots, and with no other clock.
struct Clock {
  /// Returns the time since an arbitrary point.
  [[nodiscard]] static std::int64_t nanoseconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
  }
  /// Returns the same in seconds.
  [[nodiscard]] static double seconds() noexcept { return static_cast<double>(nanoseconds()) * 1e-9; }
  /// Returns the time with a delay of some milliseconds, at a small part of the cost.
  [[nodiscard]] static double coarse_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  /// Returns the processor time of the calling thread. It stands still while the thread waits, for example for a
  /// processor.
  [[nodiscard]] static double thread_seconds() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
};

}}  // namespace lockstep
