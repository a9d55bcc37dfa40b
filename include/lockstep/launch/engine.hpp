// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Kind of a run's ranks, which determines the communicator that connects them.
enum class Engine {
  self,     ///< one rank: this process
  thread,   ///< threads of this process
  process,  ///< processes on this host
  mpi,      ///< processes that MPI connects, on one host or several
  store,    ///< processes on several hosts that share only a StoreServer
  nccl,     ///< ranks of any of these kinds, on one host or several, with one GPU each
};

/// Returns the engine's name in run records: "self", "thread", "process", "mpi", "store", "nccl".
[[nodiscard]] constexpr char const* name(Engine engine) noexcept {
  switch (engine) {
    case Engine::self:
      return "self";
    case Engine::thread:
      return "thread";
    case Engine::process:
      return "process";
    case Engine::mpi:
      return "mpi";
    case Engine::store:
      return "store";
    case Engine::nccl:
      return "nccl";
  }
  return "?";
}

}}}  // namespace lockstep::launch
