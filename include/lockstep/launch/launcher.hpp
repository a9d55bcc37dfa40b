// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// Who started the ranks of a run. Those that stand further up are believed before those below.
enum class Launcher {
  lockstep,  ///< this program itself, with --nproc
  torchrun,  ///< torchrun --no-python, or whoever sets the same variables
  openmpi,   ///< mpirun of Open MPI
  mvapich,   ///< mpirun_rsh of MVAPICH2
  pmix,      ///< a server of PMIx, for instance srun --mpi=pmix
  pmi,       ///< mpirun of MPICH or Intel MPI, srun --mpi=pmi2
  slurm,     ///< plain srun
  single,    ///< nobody: one process, started by hand
};

/// What a user would call it: "torchrun", "mpirun", "srun".
[[nodiscard]] constexpr char const* name(Launcher launcher) noexcept {
  constexpr char const* names[]{"--nproc",        "torchrun", "Open MPI's mpirun", "mpirun_rsh", "PMIx",
                                "MPICH's mpirun", "srun",     "no launcher"};
  return names[static_cast<int>(launcher)];
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
