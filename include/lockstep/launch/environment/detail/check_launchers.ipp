// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/environment/detail/check_launchers.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE std::string describe_values(LauncherValues const& values, Lookup variable) {
  auto const& names = *values.names;
  return std::string(name(values.launcher())) + " (" + describe_variable(variable, names.rank) +
         (names.size ? ", " + describe_variable(variable, names.size) : "") + ")";
}

LOCKSTEP_INLINE bool are_compatible(LauncherValues const& inner, LauncherValues const& outer, Lookup variable) {
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

LOCKSTEP_INLINE void check_nested_tasks(LauncherValues const& inner, LauncherValues const& outer, Lookup variable) {
  auto const* const text = variable("SLURM_GPUS_ON_NODE");
  if (!text || inner.launcher() != Launcher::torchrun || outer.local_size < 2 || inner.local_size < 2) return;
  auto const gpus = static_cast<int>(
      parse_variable("SLURM_GPUS_ON_NODE", text, 0, max_ranks, "; it was set by another program, or lost"));
  if (gpus == 0 || outer.local_size * inner.local_size <= gpus) return;
  throw ConfigError("launch: " + std::to_string(outer.local_size) + " tasks x " + std::to_string(inner.local_size) +
                    " processes for " + text + " GPUs on this node: srun started " + std::to_string(outer.local_size) +
                    " tasks here (" + outer.names->local_size + "), and torchrun in each of them " +
                    describe_variable(variable, inner.names->local_size) +
                    "; give srun one task for each node (--ntasks-per-node=1), or leave torchrun out");
}

LOCKSTEP_INLINE void check_launchers(LauncherValues const& inner, LauncherValues const& outer, Lookup variable) {
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

}}}  // namespace lockstep::launch::detail
