// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <exception>
#include <string>

#include <lockstep/comm/engine/any_communicator.hpp>
#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/world.hpp>

#if defined(LOCKSTEP_MPI)
#include <lockstep/comm/mpi/mpi_communicator.hpp>
#endif

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app::detail {

/// Returns the communicator of a world, also of MPI if the program was built with it.
[[nodiscard]] inline comm::AnyCommunicator connect(launch::World const& world) {
#if defined(LOCKSTEP_MPI)
  if (world.engine == launch::Engine::mpi)
    return comm::AnyCommunicator(comm::MpiCommunicator(MPI_COMM_WORLD, world.limits, world.warn));
#endif
  return comm::connect(world);
}

/// Initializes and finalizes MPI around a rank's training, if MPI connects the ranks. After an exception it does not
/// finalize, because that would wait for the other ranks. mpirun terminates them when this process exits.
class [[nodiscard]] MpiSession {
 public:
#if defined(LOCKSTEP_MPI)
  explicit MpiSession(launch::World const& world) : open_(world.engine == launch::Engine::mpi) {
    if (!open_) return;
    MPI_Init(nullptr, nullptr);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    if (rank != world.rank || size != world.size)
      throw ConfigError("--engine mpi: this is rank " + std::to_string(world.rank) + " of " +
                        std::to_string(world.size) + " to its launcher but rank " + std::to_string(rank) + " of " +
                        std::to_string(size) +
                        " to MPI, which another launcher started; use this MPI's own mpirun, or srun " + "--mpi=pmix");
  }
  ~MpiSession() {
    if (open_ && std::uncaught_exceptions() == 0) MPI_Finalize();
  }
#else
  explicit MpiSession(launch::World const&) {}
#endif
  MpiSession(MpiSession const&) = delete;
  MpiSession& operator=(MpiSession const&) = delete;

 private:
  [[maybe_unused]] bool open_ = false;
};

}}}  // namespace lockstep::app::detail
