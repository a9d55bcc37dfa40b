// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <fstream>
#include <optional>
#include <string>
#include <thread>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the number of processors that this process may run on, as set by taskset or a scheduler; at least 1.
/// Affinities of single threads do not count.
[[nodiscard]] inline int allowed_processors() noexcept {
  cpu_set_t given;
  if (::sched_getaffinity(::getpid(), sizeof given, &given) == 0) return std::max(1, CPU_COUNT(&given));
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));  // more than fit a cpu_set_t
}

/// Returns the processor time of this process's control group and the groups above it, in whole processors: a quota of
/// 2.5 processors is 2, and one of less than a processor is 1. Empty without a quota. `docker run --cpus`, Kubernetes'
/// limits.cpu and systemd's CPUQuota set one. More threads than this take turns, and wait for the next period of
/// usually 100 ms.
/// @param root folder of /proc and /sys, for tests
[[nodiscard]] std::optional<int> processor_quota(std::string const& root = {});

/// Returns the number of processors that this process may use: the allowed ones, or fewer by the quota of its control
/// group. It can be below the machine's number.
[[nodiscard]] inline int processors() noexcept {
  auto const allowed = allowed_processors();
  try {
    return std::min(allowed, processor_quota().value_or(allowed));
  } catch (std::exception const&) {  // no memory
    return allowed;
  }
}

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/processors.ipp>
#endif
