// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/processors.hpp>
#include <lockstep/launch/detail/supervised_rank.hpp>
#include <lockstep/launch/environment/detail/launcher_values.hpp>
#include <lockstep/launch/environment/launcher.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns "Slurm's srun started 4 tasks (SLURM_PROCID=2, SLURM_STEP_NUM_TASKS=4)".
std::string describe_values(LauncherValues const& values, Lookup variable);

/// Returns whether `outer` can have started `inner`, or both have equal values.
bool are_compatible(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

/// Rejects more ranks than GPUs on a node: an agent in every task instead of one per node. @throws ConfigError
void check_nested_tasks(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

/// Checks two launchers against each other. @throws ConfigError if they contradict each other
void check_launchers(LauncherValues const& inner, LauncherValues const& outer, Lookup variable);

}}}  // namespace lockstep::launch::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Place of this process among the ranks of a run, as its launcher set it.
struct Environment {
  Launcher launcher = Launcher::single;  ///< program that started the rank
  int rank = 0;                          ///< in [0, size)
  int size = 1;                          ///< number of ranks on all hosts
  int local_rank = 0;                    ///< rank among the ranks of this host
  int local_size = 1;                    ///< number of ranks on this host
  int restarts = 0;                      ///< how often the launcher has restarted the ranks
  std::string variables = {};            ///< the variables with the rank's place: "RANK=0, WORLD_SIZE=2, …"

  /// Returns whether all ranks are on this host.
  [[nodiscard]] bool one_host() const noexcept { return local_size == size; }
};

namespace detail {

Environment to_environment(LauncherValues const& values, Lookup variable);

/// Returns the launcher that LOCKSTEP_LAUNCHER names, or null if it is not set. The user sets it if the variables are
/// ambiguous.
LauncherVariables const* chosen_launcher(Lookup variable, bool& single);

/// Adds sizes that a launcher does not set: PMIx has no size, others no rank on the host. Uses Slurm's values if Slurm
/// started the same tasks.
void fill_missing_sizes(LauncherValues& values, LauncherValues const* slurm);

/// Rejects variables of torchrun that give a number of ranks and a place on this host, but no rank.
/// @throws ConfigError
void check_no_place(Lookup variable);

void check_complete(LauncherValues const& values, Lookup variable);

}  // namespace detail

/// Returns the place of this process. Uses the first launcher whose variables are set: Lockstep's supervisor, torchrun,
/// Open MPI, MVAPICH2, PMIx, PMI, a Slurm step. Without any, the process is a single rank. Rejects launchers that
/// disagree, unless one can have started the other, for example a torchrun in each task of srun. Set LOCKSTEP_LAUNCHER
/// to choose one.
/// @throws ConfigError with the variables, if they contradict each other, are incomplete, or are not numbers
[[nodiscard]] Environment detect(Lookup variable = {});

/// Returns the number of processors that the ranks of this host share. mpirun and srun may have given each rank its
/// own.
[[nodiscard]] int cores_of_ranks(Environment const& place);

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/environment/environment.ipp>
#endif
