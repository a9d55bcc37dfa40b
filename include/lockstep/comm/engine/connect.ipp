// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/engine/connect.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

LOCKSTEP_INLINE AnyCommunicator connect(launch::World const& world) {
  switch (world.engine) {
    case launch::Engine::thread:
      return AnyCommunicator(ThreadCommunicator(world));
    case launch::Engine::process:
      return AnyCommunicator(ProcessCommunicator(world));
    case launch::Engine::mpi:
      throw ConfigError(
          "comm::connect: MPI connects this run's ranks; include lockstep/comm/mpi/mpi_communicator.hpp, and pass on "
          "AnyCommunicator(MpiCommunicator(MPI_COMM_WORLD, world.limits, world.warn))");
    case launch::Engine::store:
    case launch::Engine::nccl:
      throw ConfigError(
          "comm::connect: this run's ranks are on several hosts, where NCCL connects GPUs "
          "(lockstep/comm/nccl/nccl_communicator.cuh) and MPI all others (--engine mpi); "
          "lockstep/comm/store/store_communicator.hpp is for small messages");
    case launch::Engine::self:
      break;
  }
  return AnyCommunicator(SelfCommunicator{});
}

}}}  // namespace lockstep::comm
