// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/environment/environment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_COLD_INLINE std::string describe_values(LauncherValues const& values, Lookup variable) {
  auto const& names = *values.names;
  return std::string(name(values.launcher())) + " (" + describe_variable(variable, names.rank) +
         (names.size ? ", " + describe_variable(variable, names.size) : "") + ")";
}

LOCKSTEP_COLD_INLINE bool are_compatible(LauncherValues const& inner, LauncherValues const& outer, Lookup variable) {
  if (outer.size == 1 || outer.size < 0) return true;                   // a single task
  bool const multiplied = inner.size == outer.size * inner.local_size;  // a torchrun agent in each task
  if (inner.launcher() == Launcher::torchrun && variable("TORCHELASTIC_RUN_ID")) return multiplied;
  bool const same_place = inner.local_size == outer.local_size || inner.local_size < 0 || outer.local_size < 0;
  if (inner.rank == outer.rank && inner.size == outer.size && same_place) return true;
  if (inner.launcher() == Launcher::torchrun) return multiplied;
  // mpirun starts one daemon per node by srun, except on its own node.
  bool const daemons = outer.launcher() == Launcher::slurm && outer.local_size == 1;
  return daemons && inner.local_size < inner.size && inner.size >= outer.size;
}

LOCKSTEP_COLD_INLINE void check_nested_tasks(LauncherValues const& inner, LauncherValues const& outer,
                                             Lookup variable) {
  auto const* const text = variable("SLURM_GPUS_ON_NODE");
  if (!text || inner.launcher() != Launcher::torchrun || outer.local_size < 2 || inner.local_size < 2) return;
  auto const gpus = static_cast<int>(parse_variable("SLURM_GPUS_ON_NODE", text, 0, max_ranks, launcher_remedy));
  if (gpus == 0 || outer.local_size * inner.local_size <= gpus) return;
  throw ConfigError("launch: " + std::to_string(outer.local_size) + " tasks x " + std::to_string(inner.local_size) +
                    " processes for " + text + " GPUs on this node: srun started " + std::to_string(outer.local_size) +
                    " tasks here (" + outer.names->local_size + "), and torchrun in each of them " +
                    describe_variable(variable, inner.names->local_size) +
                    "; give srun one task for each node (--ntasks-per-node=1), or leave torchrun out");
}

LOCKSTEP_COLD_INLINE void check_launchers(LauncherValues const& inner, LauncherValues const& outer, Lookup variable) {
  if (are_compatible(inner, outer, variable)) return check_nested_tasks(inner, outer, variable);
  bool const multiplied = inner.size > 1 && inner.size == inner.local_size;
  std::string const both = describe_values(inner, variable) + " and " + describe_values(outer, variable);
  std::string const choice =
      ", or settle it with LOCKSTEP_LAUNCHER=single, torchrun, openmpi, mvapich, pmix, pmi or slurm";
  if (inner.launcher() == Launcher::torchrun && multiplied)
    throw ConfigError("launch: " + std::to_string(outer.size) + " tasks x " + std::to_string(inner.local_size) +
                      " processes: " + both + " do not make one run, but " + std::to_string(outer.size) +
                      " separate runs; start torchrun once for each node, with --nnodes" + choice);
  throw ConfigError("launch: " + both + " disagree about this process, so that some ranks would " +
                    "run separately or wait forever; start it with one of them" +
                    (outer.launcher() == Launcher::slurm ? " (for MPI: srun --mpi=pmix or --mpi=pmi2)" : "") + choice);
}

LOCKSTEP_COLD_INLINE Environment to_environment(LauncherValues const& values, Lookup variable) {
  Environment out{values.launcher(), values.rank, values.size, values.local_rank, values.local_size, 0, {}};
  if (auto const* const count = variable("TORCHELASTIC_RESTART_COUNT"); count && out.launcher == Launcher::torchrun)
    out.restarts = static_cast<int>(parse_variable("TORCHELASTIC_RESTART_COUNT", count, 0, INT32_MAX, launcher_remedy));
  for (auto const* name : {values.names->rank, values.names->size, values.names->local_rank, values.names->local_size})
    if (name && variable(name))
      out.variables += (out.variables.empty() ? "" : ", ") + describe_variable(variable, name);
  return out;
}

LOCKSTEP_COLD_INLINE LauncherVariables const* chosen_launcher(Lookup variable, bool& single) {
  auto const* const choice = variable("LOCKSTEP_LAUNCHER");
  if (!choice) return nullptr;
  std::string_view const text = choice;
  constexpr char const* words[]{"torchrun", "openmpi", "mvapich", "pmix", "pmi", "slurm"};
  for (std::size_t i = 0; i < std::size(words); ++i)
    if (text == words[i]) return &launcher_variables[i];
  single = text == "single";
  if (!single)
    throw ConfigError("launch: LOCKSTEP_LAUNCHER=" + std::string(text) +
                      " is not one of torchrun, openmpi, mvapich, pmix, pmi, slurm, single; name one, or unset it");
  return nullptr;
}

LOCKSTEP_COLD_INLINE void fill_missing_sizes(LauncherValues& values, LauncherValues const* slurm) {
  bool const same_tasks = slurm && (values.size < 0 || values.size == slurm->size) && values.rank == slurm->rank;
  if (same_tasks && values.size < 0) values.size = slurm->size;
  if (same_tasks && values.local_rank < 0) values.local_rank = slurm->local_rank;
  if (same_tasks && values.local_size < 0) values.local_size = slurm->local_size;
  if (values.size != 1) return;
  values.local_rank = 0;
  values.local_size = 1;
}

LOCKSTEP_COLD_INLINE void check_no_place(Lookup variable) {
  bool const has_place = variable("WORLD_SIZE") && (variable("LOCAL_RANK") || variable("LOCAL_WORLD_SIZE"));
  if (!has_place || std::string_view(variable("WORLD_SIZE")) == "1") return;
  throw ConfigError("launch: the environment has " + describe_variable(variable, "WORLD_SIZE") +
                    " and a place on this host (" + describe_variable(variable, "LOCAL_RANK") + ", " +
                    describe_variable(variable, "LOCAL_WORLD_SIZE") +
                    ") but not RANK, so that each rank would run alone; set RANK, or unset them");
}

LOCKSTEP_COLD_INLINE void check_complete(LauncherValues const& values, Lookup variable) {
  auto const& names = *values.names;
  if (values.size > 0 && values.local_rank >= 0 && values.local_size > 0) return;
  if (values.local_size < 0 && names.local_size && variable(names.local_size))  // Slurm's list
    throw ConfigError("launch: " + describe_variable(variable, names.local_size) + " and " +
                      describe_variable(variable, "SLURM_NODEID") +
                      " do not give the number of tasks on this node; a list such as 4(x2),3 and a number from 0 do" +
                      launcher_remedy);
  std::string missing;
  for (auto const& [value, name] : {std::pair{values.size, names.size ? names.size : "SLURM_STEP_NUM_TASKS"},
                                    std::pair{values.local_rank, names.local_rank ? names.local_rank : "SLURM_LOCALID"},
                                    std::pair{values.local_size, names.local_size ? names.local_size : "SLURM_NODEID"}})
    if (value < 0) missing += (missing.empty() ? "" : ", ") + std::string(name);
  throw ConfigError("launch: " + std::string(name(values.launcher())) + " started this process (" +
                    describe_variable(variable, names.rank) +
                    "), but the number or the place of its ranks is unknown (" + missing +
                    " missing); set these, or LOCKSTEP_LAUNCHER=single for a program on its own");
}

}}}  // namespace lockstep::launch::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_COLD_INLINE Environment detect(Lookup variable) {
  using namespace detail;
  if (SupervisedRank::any(variable)) {
    auto const place = SupervisedRank::read(variable);
    return {Launcher::lockstep, place.rank, place.size, place.rank, place.size, place.restarts, {}};
  }
  bool single = false;
  auto const* const only = chosen_launcher(variable, single);
  if (single) return {};
  std::vector<LauncherValues> launchers;
  for (auto const& names : launcher_variables)
    if ((!only || only == &names || (names.launcher == Launcher::slurm && in_slurm_step(variable))) &&
        is_present(names, variable))
      launchers.push_back(read_values(names, variable));
  if (only && (launchers.empty() || launchers.front().names != only))
    throw ConfigError("launch: LOCKSTEP_LAUNCHER=" + std::string(variable("LOCKSTEP_LAUNCHER")) +
                      " names a launcher whose variables are missing (" + describe_variable(variable, only->rank) +
                      "); start with " + name(only->launcher) + ", or unset LOCKSTEP_LAUNCHER");
  if (launchers.empty()) {
    check_no_place(variable);
    return {};
  }

  auto const* const slurm = launchers.back().launcher() == Launcher::slurm ? &launchers.back() : nullptr;
  auto& first = launchers.front();
  fill_missing_sizes(first, slurm == &first ? nullptr : slurm);
  for (std::size_t i = 1; i < launchers.size() && !only; ++i) check_launchers(first, launchers[i], variable);
  check_complete(first, variable);
  return to_environment(first, variable);
}

LOCKSTEP_COLD_INLINE int cores_of_ranks(Environment const& place) {
  auto const mine = allowed_processors();
  using enum Launcher;
  bool const inherits = place.launcher == lockstep || place.launcher == torchrun || place.launcher == single;
  auto const all = inherits || mine == ::sysconf(_SC_NPROCESSORS_ONLN) ? mine : mine * place.local_size;
  return std::min(all, processor_quota().value_or(all));  // the ranks of a host share their control group's quota
}

}}}  // namespace lockstep::launch
