// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the number of processors that this process may run on, as set by taskset or a scheduler; at least 1.
/// Affinities of single threads do not count.
[[nodiscard]] int allowed_processors() noexcept;

/// Returns the processor time of this process's control group and the groups above it, in whole processors: a quota of
/// 2.5 processors is 2, and one of less than a processor is 1. Empty without a quota. `docker run --cpus`, Kubernetes'
/// limits.cpu and systemd's CPUQuota set one. More threads than this take turns, and wait for the next period of
/// usually 100 ms.
/// @param root folder of /proc and /sys, for tests
[[nodiscard]] std::optional<int> processor_quota(std::string const& root = {});

/// Returns the time for which quotas have stopped the threads of this process's control group or of the groups above
/// it, whichever is longest. Summed over processors. 0 without a quota.
/// @param root folder of /proc and /sys, for tests
[[nodiscard]] double throttled_seconds(std::string const& root = {});

/// Returns the time in which a thread of this process was ready to run and had no processor; 0 if the system does not
/// say.
/// @param thread number of the system's, as from gettid; 0: the calling thread
/// @param root folder of /proc, for tests
[[nodiscard]] double queued_seconds(int thread = 0, std::string const& root = {});

/// Returns a number that is equal for processes of one machine that may run on the same processors, and below 2^52.
[[nodiscard]] std::uint64_t processor_set();

/// Returns the number of processors that this process may use: the allowed ones, or fewer by the quota of its control
/// group. It can be below the machine's number.
[[nodiscard]] int processors() noexcept;

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/processors.ipp>
#endif
