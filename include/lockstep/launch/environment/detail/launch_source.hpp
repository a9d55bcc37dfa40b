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
bool in_slurm_step(Lookup variable);

/// Returns whether the launcher's variables are set.
/// @throws ConfigError if only some are set
bool is_present(LaunchNames const& names, Lookup variable);

/// Reads one launcher's variables, without a check against other launchers.
/// @throws ConfigError for values that are no numbers or out of range
LaunchSource read_source(LaunchNames const& names, Lookup variable);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/environment/detail/launch_source.ipp>
#endif
