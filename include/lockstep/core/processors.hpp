// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <thread>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the number of processors that this process may use, as set by taskset or a scheduler; at least 1. It can be
/// below the machine's number. Affinities of single threads do not count.
[[nodiscard]] inline int processors() noexcept {
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0) return std::max(1, CPU_COUNT(&given));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // more than fit a cpu_set_t
}

}}  // namespace lockstep
