// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/detail/secret.hpp>
#include <lockstep/launch/detail/supervised_rank.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/job_key.hpp>
#include <lockstep/launch/run/detail/launched_world.hpp>
#include <lockstep/launch/run/detail/local_rendezvous.hpp>
#include <lockstep/launch/run/detail/multi_host_rank.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/rank_watch.hpp>
#include <lockstep/launch/run/detail/stop_watch.hpp>
#include <lockstep/launch/run/supervisor.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

namespace detail {

/// Opens /dev/null for each standard stream that is closed. Otherwise the next file would become that stream, and
/// output would be written into it.
void open_standard_streams() noexcept;

void check(Options const& options);

/// Starts the ranks, and restarts all of them after a failure while `options.max_restarts` allows it.
int supervise(Options const& options);

/// Runs `train` as one rank of a supervisor. The supervisor reports errors once for all ranks. Throws nothing once the
/// rank has joined.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the supervisor or its memory is gone
int run_process_rank(SupervisedRank const& place, Options const& options, std::function<int(World&)> const& train);

/// Runs `train` once per rank on threads of this process. The calling thread is rank 0.
/// @returns 0, or the exit code of the rank that failed first; without a failure, the code of ranks that stopped on
/// request
/// @throws the first failed rank's exception, after all ranks have ended; the others got RankLost while they waited for
/// it
int run_threads(Options const& options, std::function<int(World&)> const& train);

/// Runs `train` as one of the ranks that another launcher has started on this host. They connect, share memory, and
/// then run like the ranks of a Supervisor. Throws nothing once the ranks are connected; the rank that first detects a
/// failure reports it.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the rendezvous fails
int run_single_host_rank(Environment const& place, Options const& options, std::function<int(World&)> const& train);

/// Runs `train` as a rank that another process started.
/// @throws ConfigError at the second call: a rank inherits resources for one run
int run_once(Lookup variables, Options const& options, std::function<int(World&)> const& train);

/// Rejects options that do not work for ranks of another launcher. @throws ConfigError
void check(Environment const& place, Options const& options);
/// Implements launch::run.
int run(Options const& given, std::function<int(World&)> const& train);
}  // namespace detail

/// Calls `train(world)` once per rank. By default this process is the only rank. With `options.threads` the ranks are
/// threads of it. With `options.nproc` they are copies of this program, which reach the same call and run `train`
/// there; this process watches them. If torchrun, mpirun or srun has started the ranks, each calls `train` once. A
/// program that starts processes must call it once, and do little before.
/// @returns 0 if all ranks returned 0; else the exit code of the first rank that failed, 128 + signal if it was killed
/// @throws ConfigError for invalid options or an inconsistent environment; exceptions of `train`, except with
/// processes, whose errors go to `options.report`, by default to standard error
template <class Train>
requires std::is_invocable_r_v<int, Train&, World&>
int run(Options const& options, Train&& train) { return detail::run(options, std::ref(train)); }
/// Rejects other callables at compile time and names the required signature.
template <class Train>
int run(Options const&, Train&&) {
  static_assert(std::is_invocable_r_v<int, Train&, World&>,
                "Lockstep: launch::run takes a function of the rank that returns its exit code, such as "
                "[&](launch::World& world) { ...; return 0; }; see docs/reference/launch.md");
  return 2;
}

}}}  // namespace lockstep::launch

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/run.ipp>
#endif
