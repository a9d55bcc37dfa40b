// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/option_descriptor.hpp>
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

/// Returns the exit code for an error: 2 for wrong input (ConfigError, DataError), 1 for any other.
[[nodiscard]] inline int exit_code(std::exception const& error) noexcept {
  return dynamic_cast<ConfigError const*>(&error) || dynamic_cast<DataError const*>(&error) ? 2 : 1;
}

/// Calls the main function of a program. Prints the message of an exception to the standard error stream, as
/// "PROGRAM: message".
/// @returns the function's exit code, or that of the exception
template <class Main>
[[nodiscard]] int exit_code_of(char const* program, Main const& main) {
  try {
    return main();
  } catch (std::exception const& error) {
    std::fprintf(stderr, "%s: %s\n", program, error.what());
    return exit_code(error);
  }
}

/// Effect of a signal that asks a run to stop.
enum class OnSignal {
  end,  ///< SIGINT and SIGTERM end the run at once
  /// The first SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 or SIGXCPU requests a stop by `World::stop_request`. SIGINT or a
  /// further signal ends the run at once.
  request_stop,
  ask [[deprecated("OnSignal::request_stop")]] = request_stop,  ///< deprecated: use request_stop
};

/// Options of `run`.
struct Options {
  int nproc = 1;         ///< number of ranks that are processes: copies of this program
  int max_restarts = 0;  ///< with nproc: how often all ranks are restarted after a failure
  int threads = 1;       ///< number of ranks that are threads of this process
  /// Arguments of the started processes, with the program's name first; empty: this process's arguments.
  std::vector<std::string> arguments = {};
  WaitLimits limits = {};  ///< waiting times for other ranks, in seconds
  /// Engine that connects ranks of another launcher. `process` is for one host, `mpi` and `nccl` are for any number.
  /// `store` connects them through the store, even on one host.
  Engine engine = Engine::process;
  /// Rank 0's host and port, for several hosts without MPI; empty and 0: the launcher's values.
  std::string master_address = {};
  std::uint16_t master_port = 0;  ///< TCP port of rank 0's host
  double join_seconds = 60;       ///< time limit for ranks of another launcher to find each other
  /// Refuses ranks on several hosts without MPI that have no secret (LOCKSTEP_SECRET_FILE, LOCKSTEP_SECRET), instead of
  /// a warning.
  bool require_secret = false;
  /// Time that the other ranks have to end on their own after a failure.
  double grace_seconds = 3;
  /// With `request_stop`, a rank that stops on request returns 128 + signal. It has not failed, and the others are not
  /// terminated.
  OnSignal on_signal = OnSignal::end;
  /// With nproc: receives each line, without its end, that a rank writes to stream 1 or 2. Rank 0's stream 1 is
  /// excluded, since it may draw on a terminal. If empty, ranks write to this process's streams. This and `report` run
  /// on a thread of their own, so a callback that blocks does not delay signals.
  std::function<void(int rank, int stream, std::string const&)> line = {};
  /// Receives a sentence if a rank has waited for long, and the last operations of each rank, a line each, if one is
  /// lost. Any rank calls it, on its own thread. An exception leaves the waiting call, and ends the rank's
  /// communication.
  std::function<void(std::string const&)> warn = {};
  /// Receives one sentence with the first failure and its cause: in the process that starts the others, or in the rank
  /// that notices the failure first. If it is empty, or throws on a thread that watches other ranks, standard error
  /// receives the sentence after the program's name.
  std::function<void(std::string const&)> report = {};
};

/// Describes the options that are numbers or strings and have a flag.
[[nodiscard]] OptionList describe(Options& options);

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/options.ipp>
#endif
