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
};

/// The engine's name in run records: "self", "thread", "process", "mpi".
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
  }
  return "?";
}

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
