// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <optional>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/environment/environment.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Whether a program was built with MPI.
enum class Mpi { absent, present };
/// The answer for the program that includes this header. A linked library does not know it.
#if defined(LOCKSTEP_MPI)
constexpr auto mpi_of_program = Mpi::present;
#else
constexpr auto mpi_of_program = Mpi::absent;
#endif

/// Compares --local-rank, which `python -m torch.distributed.launch` adds, with the launcher's variables.
/// @throws ConfigError if they differ, or there are no variables
inline void check_local_rank(std::optional<int> const& local_rank, launch::Environment const& place) {
  if (!local_rank || *local_rank == place.local_rank || place.launcher == launch::Launcher::lockstep) return;
  auto const flag = "--local-rank " + std::to_string(*local_rank);
  if (place.launcher == launch::Launcher::single)
    throw ConfigError(flag + ": no launcher's variables give the number of ranks; pass on RANK, WORLD_SIZE, " +
                      "LOCAL_RANK and LOCAL_WORLD_SIZE, or start with torchrun --no-python");
  throw ConfigError(flag + " and " + name(place.launcher) + " (" + place.variables +
                    ") disagree; leave --local-rank out");
}

/// Checks --engine mpi.
/// @throws ConfigError if this program was built without MPI, or no MPI launcher started it
inline void check_mpi(launch::Environment const& place, Mpi mpi) {
  if (mpi == Mpi::absent)
    throw ConfigError(
        "--engine mpi: this program was built without MPI; configure its build with LOCKSTEP_MPI=ON, which looks for "
        "an MPI, and link lockstep::mpi, or use --engine process");
  if (place.launcher == launch::Launcher::single || place.launcher == launch::Launcher::lockstep)
    throw ConfigError("--engine mpi: no MPI launcher has started this program; start with mpirun -n N");
}

}}}  // namespace lockstep::app::detail
