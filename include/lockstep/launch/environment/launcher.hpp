// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Launcher of a run's ranks, in decreasing priority.
enum class Launcher {
  lockstep,  ///< this program, with --nproc
  torchrun,  ///< torchrun --no-python, or any launcher that sets the same variables
  openmpi,   ///< mpirun of Open MPI
  mvapich,   ///< mpirun_rsh of MVAPICH2
  pmix,      ///< a PMIx server, for example srun --mpi=pmix
  pmi,       ///< mpirun of MPICH or Intel MPI, srun --mpi=pmi2
  slurm,     ///< plain srun
  single,    ///< no launcher: one process, started by hand
};

/// Returns the launcher's usual name: "torchrun", "mpirun", "srun".
[[nodiscard]] constexpr char const* name(Launcher launcher) noexcept {
  constexpr char const* names[]{"--nproc",        "torchrun", "Open MPI's mpirun", "mpirun_rsh", "PMIx",
                                "MPICH's mpirun", "srun",     "no launcher"};
  return names[static_cast<int>(launcher)];
}

}}}  // namespace lockstep::launch
