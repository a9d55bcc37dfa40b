// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/variables.hpp>
#include <lockstep/launch/environment/detail/slurm_tasks.hpp>
#include <lockstep/launch/environment/launcher.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Variables in which a launcher sets a rank's place.
struct LaunchNames {
  Launcher launcher;
  char const *rank, *size, *local_rank, *local_size;
};

/// All launchers, in decreasing priority.
inline constexpr LaunchNames launch_names[]{
    {Launcher::torchrun, "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {Launcher::openmpi, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::mvapich, "MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_LOCAL_RANK",
     "MV2_COMM_WORLD_LOCAL_SIZE"},
    {Launcher::pmix, "PMIX_RANK", nullptr, nullptr, nullptr},  // the server's launcher sets the size
    {Launcher::pmi, "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {Launcher::slurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", "SLURM_STEP_TASKS_PER_NODE"},
};

/// One launcher's values. -1: not set.
struct LaunchSource {
  LaunchNames const* names = nullptr;
  int rank = -1, size = -1, local_rank = -1, local_size = -1;

  [[nodiscard]] Launcher launcher() const noexcept { return names->launcher; }
};

inline constexpr int most_ranks = 1 << 20;

/// Returns whether the process is a task of a Slurm step. A batch script and an allocation's shell are not: they are
/// one process each, although their environment has the allocation's number of tasks.
inline bool in_slurm_step(Lookup variable) {
  constexpr std::string_view least_reserved = "4294967280";  // steps of the batch script, the shell, the container
  auto const* const step = variable("SLURM_STEP_ID");
  if (!step || !variable("SLURM_STEP_NUM_TASKS") || !variable("SLURM_PROCID")) return false;
  std::string_view const text = step;
  return text.size() < least_reserved.size() || (text.size() == least_reserved.size() && text < least_reserved);
}

/// Returns whether the launcher's variables are set.
/// @throws ConfigError if only some are set
inline bool is_present(LaunchNames const& names, Lookup variable) {
  if (names.launcher == Launcher::slurm) return in_slurm_step(variable);
  if (!variable(names.rank)) {
    if (names.launcher != Launcher::torchrun || !variable("TORCHELASTIC_RUN_ID")) return false;
    throw ConfigError("launch: torchrun's TORCHELASTIC_RUN_ID is set and RANK is not; unset both, or pass both on");
  }
  if (!names.size || variable(names.size) || names.launcher == Launcher::pmi) return true;
  throw ConfigError("launch: the environment has " + tell_variable(variable, names.rank) + " but not " + names.size +
                    ", so that " + name(names.launcher) + "'s ranks would each run alone; set both, or neither");
}

/// Reads one launcher's variables, without a check against other launchers.
/// @throws ConfigError for values that are no numbers or out of range
inline LaunchSource read_source(LaunchNames const& names, Lookup variable) {
  auto const number = [&](char const* which, int least, int most) {
    auto const* const text = which ? variable(which) : nullptr;
    if (!text) return -1;
    return static_cast<int>(parse_variable(which, text, static_cast<std::uint64_t>(least),
                                           static_cast<std::uint64_t>(most),
                                           "; it was set by another program, or lost"));
  };
  LaunchSource source{&names, -1, number(names.size, 1, most_ranks), -1, -1};
  auto const size = source.size > 0 ? source.size : most_ranks;
  source.rank = number(names.rank, 0, size - 1);
  if (names.launcher == Launcher::slurm) {
    auto const node = number("SLURM_NODEID", 0, most_ranks);
    if (auto const* const list = variable(names.local_size); list && node >= 0)
      source.local_size = slurm_tasks_of(list, node);
    else if (source.size == 1 || number("SLURM_STEP_NUM_NODES", 1, most_ranks) == 1)
      source.local_size = source.size;
  } else {
    source.local_size = number(names.local_size, 1, size);
  }
  source.local_rank = number(names.local_rank, 0, (source.local_size > 0 ? source.local_size : size) - 1);
  return source;
}

}}}  // namespace lockstep::launch::detail
