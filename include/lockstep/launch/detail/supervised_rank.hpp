// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/variables.hpp>
#include <lockstep/launch/shared_memory/control_page.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

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
  [[nodiscard]] std::vector<std::string> assignments() const {
    std::string const values[]{std::to_string(rank),   std::to_string(size), std::to_string(supervisor),
                               std::to_string(memory), std::to_string(job),  std::to_string(restarts)};
    std::vector<std::string> out;
    for (std::size_t i = 0; i < std::size(variables); ++i) out.push_back(std::string(variables[i]) + "=" + values[i]);
    return out;
  }

  /// Returns whether a supervisor has set any of the variables.
  [[nodiscard]] static bool any(Lookup variable) {
    for (auto const* name : variables)
      if (variable(name)) return true;
    return false;
  }

  /// @throws ConfigError if some are missing or are not numbers
  [[nodiscard]] static SupervisedRank read(Lookup variable) {
    constexpr auto remedy = "; Lockstep sets them all itself: unset them and start with --nproc N";
    std::string set, missing;
    for (auto const* name : variables) (variable(name) ? set : missing) += std::string(" ") + name;
    if (!missing.empty()) throw ConfigError("launch: the environment has" + set + " but not" + missing + remedy);
    auto const integer = [&](std::size_t i, std::uint64_t least, std::uint64_t most) {
      return parse_variable(variables[i], variable(variables[i]), least, most, remedy);
    };
    SupervisedRank place;
    place.size = static_cast<int>(integer(1, 1, max_local_ranks));
    place.rank = static_cast<int>(integer(0, 0, static_cast<std::uint64_t>(place.size) - 1));
    place.supervisor = static_cast<int>(integer(2, 1, INT32_MAX));
    place.memory = static_cast<int>(integer(3, 0, INT32_MAX));
    place.job = integer(4, 0, UINT64_MAX);
    place.restarts = static_cast<int>(integer(5, 0, INT32_MAX));
    return place;
  }
};

}}}  // namespace lockstep::launch::detail
