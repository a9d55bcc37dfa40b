// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/variables.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Looks up variables in the environment with which this process began: clearenv() does not change it. Finds none
/// without /proc.
[[nodiscard]] Lookup initial_environment();

/// Place of a process that a Supervisor started, from its environment.
struct SupervisedRank {
  int rank = 0;
  int size = 1;
  int supervisor = 0;  ///< pid of the process that started and watches this one
  int memory = -1;     ///< file descriptor of the shared segment
  std::uint64_t job = 0;
  int restarts = 0;  ///< how often the ranks were restarted

  static constexpr char const* variables[]{"LOCKSTEP_RANK",      "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_SUPERVISOR",
                                           "LOCKSTEP_MEMORY_FD", "LOCKSTEP_JOB",        "LOCKSTEP_RESTARTS"};

  /// Returns "LOCKSTEP_RANK=1" and so on, in the order of `variables`.
  [[nodiscard]] std::vector<std::string> assignments() const;

  /// Returns whether a supervisor has set any of the variables.
  [[nodiscard]] static bool any(Lookup variable);

  /// @throws ConfigError if some are missing or are not numbers
  [[nodiscard]] static SupervisedRank read(Lookup variable);
};

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/detail/supervised_rank.ipp>
#endif
