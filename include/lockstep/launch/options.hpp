// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

/// The exit code for an error: 2 for wrong input (ConfigError, DataError), 1 for any other.
[[nodiscard]] inline int exit_code(std::exception const& error) noexcept {
  return dynamic_cast<ConfigError const*>(&error) || dynamic_cast<DataError const*>(&error) ? 2 : 1;
}

/// What a signal that wants a run to end does.
enum class OnSignal {
  end,  ///< ends it at once: SIGINT and SIGTERM
  ask,  ///< the first SIGTERM, SIGHUP or SIGUSR1 asks, by `World::stop_request`; SIGINT, and another one later, end it
        ///< at once
};

/// How `run` starts ranks.
struct Options {
  int nproc = 1;         ///< ranks that are processes of their own: copies of this program
  int max_restarts = 0;  ///< with nproc: how often all ranks are started anew once one has failed
  int threads = 1;       ///< ranks that are threads of this process
  /// Of the started processes, the program's name first; empty: the same as this one's.
  std::vector<std::string> arguments = {};
  WaitLimits limits = {};
  /// What joins ranks that another launcher has started: `process` on one host, `mpi` or `nccl` on any number of them;
  /// `store` has them meet as on several.
  Engine engine = Engine::process;
  /// With several hosts and no MPI: the first rank's, and a port of it; empty and 0: as the launcher says.
  std::string master_address = {};
  std::uint16_t master_port = 0;
  double join_seconds = 60;  ///< what ranks that another launcher has started get to find each other
  /// What the others get to end by themselves once a rank has failed.
  double grace_seconds = 3;
  /// With `ask`, a rank that ends because it was asked returns 128 + signal, and has not failed: nobody hurries others.
  OnSignal on_signal = OnSignal::end;
  /// With nproc: told each line (without its end) that a rank writes to a stream, 1 or 2. The first rank's stream 1 is
  /// not touched, for it may draw on a terminal. None: ranks write where this process does. This and `report` are then
  /// called on one thread that does nothing else: one that waits for a reader keeps no signal from the ranks.
  std::function<void(int rank, int stream, std::string const&)> line = {};
  /// Told in one sentence when a rank has waited for long, and, a line for each rank, what all did last when one is
  /// lost; called by any rank, on its own thread.
  std::function<void(std::string const&)> warn = {};
  /// Told in one sentence, in the process that starts the others, who failed first, and why.
  std::function<void(std::string const&)> report = {};
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
