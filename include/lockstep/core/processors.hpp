// SPDX-License-Identifier: Apache-2.0
#pragma once
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

/// Returns the number of processors that this process may use: the allowed ones, or fewer by the quota of its control
/// group. It can be below the machine's number.
[[nodiscard]] int processors() noexcept;

}}  // namespace lockstep

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/processors.ipp>
#endif
