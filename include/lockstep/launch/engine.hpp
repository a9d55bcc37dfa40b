// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// What the ranks of a run are, and so which communicator joins them.
enum class Engine {
  self,     ///< one rank: this process
  thread,   ///< threads of this process
  process,  ///< processes on this host
  mpi,      ///< processes that MPI joins, on one host or several
  store,    ///< processes on several hosts that share no more than a StoreServer
  nccl,     ///< ranks of any of these, on one host or several, with a GPU each
};

/// The engine's name in run records: "self", "thread", "process", "mpi", "store", "nccl".
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

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
