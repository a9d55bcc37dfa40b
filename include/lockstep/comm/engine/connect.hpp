// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/comm/engine/any_communicator.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/comm/shared_memory/process_communicator.hpp>
#include <lockstep/comm/shared_memory/thread_communicator.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Returns a communicator that connects the ranks of a world. Not collective: the first operation waits for the other
/// ranks. A rank can hold one such communicator at a time.
/// @throws ConfigError if this rank is already connected, or if the world's engine is mpi, store or nccl
[[nodiscard]] inline AnyCommunicator connect(launch::World const& world) {
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
          "comm::connect: this run's ranks are on several hosts, where NCCL connects GPUs (lockstep/comm/"
          "nccl_communicator.cuh) and MPI all others (--engine mpi); lockstep/comm/store/store_communicator.hpp is for "
          "small "
          "messages");
    case launch::Engine::self:
      break;
  }
  return AnyCommunicator(SelfCommunicator{});
}

}}}  // namespace lockstep::comm
