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
inline bool in_slurm_step(Lookup variable) {
  constexpr std::string_view least_reserved = "4294967280";  // steps of the batch script, the shell, the container
  auto const* const step = variable("SLURM_STEP_ID");
  if (!step || !variable("SLURM_STEP_NUM_TASKS") || !variable("SLURM_PROCID")) return false;
  std::string_view const text = step;
  return text.size() < least_reserved.size() || (text.size() == least_reserved.size() && text < least_reserved);
}

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
inline bool is_present(LauncherVariables const& names, Lookup variable) {
  if (names.launcher == Launcher::slurm) return in_slurm_step(variable);
  if (!variable(names.rank)) {
    if (names.launcher != Launcher::torchrun || !variable("TORCHELASTIC_RUN_ID")) return false;
    throw ConfigError("launch: torchrun's TORCHELASTIC_RUN_ID is set and RANK is not; unset both, or pass both on");
  }
  if (!names.size || variable(names.size) || names.launcher == Launcher::pmi) return true;
  throw ConfigError("launch: the environment has " + describe_variable(variable, names.rank) + " but not " +
                    names.size + ", so that " + name(names.launcher) +
                    "'s ranks would each run alone; set both, or neither");
}

/// Reads one launcher's variables, without a check against other launchers.
/// @throws ConfigError for values that are no numbers or out of range
inline LauncherValues read_values(LauncherVariables const& names, Lookup variable) {
  auto const number = [&](char const* which, int least, int most) {
    auto const* const text = which ? variable(which) : nullptr;
    if (!text) return -1;
    return static_cast<int>(parse_variable(which, text, static_cast<std::uint64_t>(least),
                                           static_cast<std::uint64_t>(most),
                                           "; it was set by another program, or lost"));
  };
  LauncherValues values{&names, -1, number(names.size, 1, max_ranks), -1, -1};
  auto const size = values.size > 0 ? values.size : max_ranks;
  values.rank = number(names.rank, 0, size - 1);
  if (names.launcher == Launcher::slurm) {
    auto const node = number("SLURM_NODEID", 0, max_ranks);
    if (auto const* const list = variable(names.local_size); list && node >= 0)
      values.local_size = slurm_tasks_of(list, node);
    else if (values.size == 1 || number("SLURM_STEP_NUM_NODES", 1, max_ranks) == 1)
      values.local_size = values.size;
  } else {
    values.local_size = number(names.local_size, 1, size);
  }
  values.local_rank = number(names.local_rank, 0, (values.local_size > 0 ? values.local_size : size) - 1);
  return values;
}

}}}  // namespace lockstep::launch::detail
