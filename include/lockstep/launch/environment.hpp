// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/control_page.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// What a started process learns from its environment.
struct RankPlace {
  int rank = 0;
  int size = 1;
  int supervisor = 0;  ///< pid of the process that started it, and watches it
  int memory = -1;     ///< file descriptor of the shared segment
  std::uint64_t job = 0;

  static constexpr std::array<char const*, 5> variables{"LOCKSTEP_RANK", "LOCKSTEP_WORLD_SIZE", "LOCKSTEP_SUPERVISOR",
                                                        "LOCKSTEP_MEMORY_FD", "LOCKSTEP_JOB"};

  /// "LOCKSTEP_RANK=1" and so on, in the order of `variables`.
  [[nodiscard]] std::vector<std::string> assignments() const {
    std::array const values{std::to_string(rank), std::to_string(size), std::to_string(supervisor),
                            std::to_string(memory), std::to_string(job)};
    std::vector<std::string> out;
    for (std::size_t i = 0; i < values.size(); ++i) out.push_back(std::string(variables[i]) + "=" + values[i]);
    return out;
  }
};

/// Looks up a variable; null where it is not set. `std::getenv` is one.
using Lookup = std::function<char const*(char const*)>;

namespace detail {

template <class Integer>
Integer parse_variable(char const* variable, std::string_view text, Integer least, Integer most) {
  Integer value{};
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value < least || value > most)
    throw ConfigError("launch: " + std::string(variable) + "=" + std::string(text) + " is not a number from " +
                      std::to_string(least) + " to " + std::to_string(most) +
                      "; Lockstep sets it itself: unset it and start with --nproc N");
  return value;
}

/// Ranks of other launchers would each believe to be alone, and silently do the same work.
inline void refuse_other_launchers(Lookup const& variable) {
  struct Launcher {
    char const *name, *rank, *size;
  };
  for (auto const& [name, rank, size] :
       {Launcher{"torchrun", "RANK", "WORLD_SIZE"}, Launcher{"mpirun", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        Launcher{"mpirun", "PMI_RANK", "PMI_SIZE"}, Launcher{"srun", "SLURM_STEP_ID", "SLURM_STEP_NUM_TASKS"}}) {
    auto const* const count = variable(size);
    if (!variable(rank) || !count || std::string_view(count) == "1") continue;
    throw ConfigError("launch: this process was started by " + std::string(name) + " as one of " + count + " (" + rank +
                      ", " + size + "), whose ranks this version cannot join; start the program once, with --nproc " +
                      count);
  }
}

}  // namespace detail

/// The place of this process, where a supervisor of Lockstep started it; nothing where it was started by hand.
/// @throws ConfigError when the variables are set in part, are no numbers, or belong to another launcher
[[nodiscard]] inline std::optional<RankPlace> detect(Lookup const& variable) {
  std::string set, missing;
  for (auto const* name : RankPlace::variables) (variable(name) ? set : missing) += std::string(" ") + name;
  if (set.empty()) {
    detail::refuse_other_launchers(variable);
    return std::nullopt;
  }
  if (!missing.empty())
    throw ConfigError("launch: the environment has" + set + " but not" + missing +
                      "; Lockstep sets them all itself: unset them and start with --nproc N");
  auto const integer = [&](std::size_t i, int least, int most) {
    auto const* const name = RankPlace::variables[i];
    return detail::parse_variable(name, variable(name), least, most);
  };
  RankPlace place;
  place.size = integer(1, 1, most_local_ranks);
  place.rank = integer(0, 0, place.size - 1);
  place.supervisor = integer(2, 1, INT32_MAX);
  place.memory = integer(3, 0, INT32_MAX);
  place.job =
      detail::parse_variable<std::uint64_t>(RankPlace::variables[4], variable(RankPlace::variables[4]), 0, UINT64_MAX);
  return place;
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
