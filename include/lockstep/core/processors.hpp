// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI {

/// The processors that this process was given, by taskset or a scheduler; perhaps fewer than the machine has. At least
/// 1. What a thread was bound to by itself does not matter.
[[nodiscard]] inline int processors() noexcept {
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0) return std::max(1, CPU_COUNT(&given));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // more than such a set has places for
}

}  // namespace lockstep::inline LOCKSTEP_ABI
