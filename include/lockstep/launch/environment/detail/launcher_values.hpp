// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/detail/variables.hpp>
#include <lockstep/launch/environment/launcher.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Variables in which a launcher sets a rank's place.
struct LauncherVariables {
  Launcher launcher;
  char const *rank, *size, *local_rank, *local_size;
};

/// All launchers, in decreasing priority.
inline constexpr LauncherVariables launcher_variables[]{
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
struct LauncherValues {
  LauncherVariables const* names = nullptr;
  int rank = -1, size = -1, local_rank = -1, local_size = -1;

  [[nodiscard]] Launcher launcher() const noexcept { return names->launcher; }
};

inline constexpr int max_ranks = 1 << 20;

/// Returns whether the process is a task of a Slurm step. A batch script and an allocation's shell are not: they are
/// one process each, although their environment has the allocation's number of tasks.
bool in_slurm_step(Lookup variable);

/// Returns the number of tasks of one node in Slurm's compact list: "4(x2),3" means 4, 4 and 3. Returns -1 for other
/// lists.
[[nodiscard]] constexpr int slurm_tasks_of(std::string_view list, int node) noexcept {
  auto const number = [&list] {
    int value = list.empty() || list[0] < '0' || list[0] > '9' ? -1 : 0;
    for (; !list.empty() && list[0] >= '0' && list[0] <= '9' && value < 1000000; list.remove_prefix(1))
      value = value * 10 + (list[0] - '0');
    return value;
  };
  while (node >= 0) {
    int const tasks = number();
    int nodes = 1;
    if (list.substr(0, 2) == "(x") {
      list.remove_prefix(2);
      nodes = number();
      if (list.empty() || list[0] != ')') return -1;
      list.remove_prefix(1);
    }
    if (tasks < 1 || nodes < 1) return -1;
    if (node < nodes) return tasks;
    node -= nodes;
    if (list.empty() || list[0] != ',') return -1;
    list.remove_prefix(1);
  }
  return -1;
}

/// Returns whether the launcher's variables are set.
/// @throws ConfigError if only some are set
bool is_present(LauncherVariables const& names, Lookup variable);

/// Reads one launcher's variables, without a check against other launchers.
/// @throws ConfigError for values that are no numbers or out of range
LauncherValues read_values(LauncherVariables const& names, Lookup variable);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/environment/detail/launcher_values.ipp>
#endif
