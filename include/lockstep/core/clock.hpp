// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <chrono>
#include <cstdint>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// Time since an arbitrary start that never goes back (CLOCK_MONOTONIC): comparable between all threads and processes
/// of one machine until it reboots, and with nothing else.
struct Clock {
  using Steady = std::chrono::steady_clock;

  [[nodiscard]] static std::int64_t nanoseconds() noexcept {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Steady::now().time_since_epoch()).count();
  }
  [[nodiscard]] static double seconds() noexcept { return static_cast<double>(nanoseconds()) * 1e-9; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI
