// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>

#include <lockstep/launch/detail/supervised_rank.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/launched_world.hpp>
#include <lockstep/launch/run/detail/multi_host_rank.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/single_host_rank.hpp>
#include <lockstep/launch/run/detail/stop_watch.hpp>
#include <lockstep/launch/run/detail/thread_ranks.hpp>
#include <lockstep/launch/run/supervisor.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

namespace detail {

/// Opens /dev/null for each standard stream that is closed. Otherwise the next file would become that stream, and
/// output would be written into it.
inline void open_standard_streams() noexcept {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));  // takes the lowest number
}

inline void check(Options const& options) {
  auto const refuse = [](std::string const& what) { throw ConfigError("launch::run: " + what); };
  for (auto const& [name, count] : {std::pair{"nproc", options.nproc}, std::pair{"threads", options.threads}})
    if (count < 1 || count > max_local_ranks)
      refuse(std::string(name) + " is " + std::to_string(count) + "; it must be from 1 to " +
             std::to_string(max_local_ranks));
  if (options.nproc > 1 && options.threads > 1)
    refuse("ranks are either processes or threads, not both (nproc " + std::to_string(options.nproc) + ", threads " +
           std::to_string(options.threads) + ")");
}

/// Starts the ranks, and restarts all of them after a failure while `options.max_restarts` allows it.
inline int supervise(Options const& options) {
  for (int restarts = 0;; ++restarts) {
    Supervisor supervisor(options, restarts);
    auto const code = supervisor.watch();
    if (!supervisor.should_restart()) return code;
  }
}

/// Runs `train` as one rank of a supervisor. The supervisor reports errors once for all ranks. Throws nothing once the
/// rank has joined.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the supervisor or its memory is gone
inline int run_process_rank(SupervisedRank const& place, Options const& options,
                            std::function<int(World&)> const& train) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != place.supervisor)  // it died before the line above, or is not our parent
    throw ConfigError(
        "launch: process " + std::to_string(place.supervisor) +
        " (LOCKSTEP_SUPERVISOR) is not the parent of this one: it has ended, or the LOCKSTEP_* variables were "
        "inherited from another program; unset them, or start with --nproc N");
  auto const segment = SharedSegment::attach(place.memory, place.size, place.job);
  World world{place.rank, place.size, place.rank,     place.size,   Engine::process,
              place.job,  segment,    options.limits, options.warn, place.restarts};
  StopWatch const watch(options.on_signal);
  world.stop_request = watch.request();
  return rank_main(world, train);
}

/// Runs `train` as a rank that another process started.
/// @throws ConfigError at the second call: a rank inherits resources for one run
inline int run_once(Options const& options, std::function<int(World&)> const& train) {
  static std::atomic<bool> has_run = false;
  auto const place = SupervisedRank::read({});
  if (has_run.exchange(true))
    throw ConfigError(
        "launch::run: this process was started as a rank and runs or has run as one; a program that starts processes "
        "calls launch::run once, around all work of its ranks");
  return run_process_rank(place, options, train);
}

/// Rejects options that do not work for ranks of another launcher. @throws ConfigError
inline void check(Environment const& place, Options const& options) {
  auto const count = std::to_string(place.size);
  auto const started =
      std::string("launch: ") + name(place.launcher) + " has started " + count + " ranks (" + place.variables + ")";
  if (options.nproc > 1 || options.threads > 1)
    throw ConfigError(started + ", and each would start " + std::to_string(std::max(options.nproc, options.threads)) +
                      " more; leave out either the launcher or --nproc and --devices");
  if (options.engine == Engine::mpi) {
    if (place.launcher == Launcher::torchrun)
      throw ConfigError(started +
                        ", but MPI does not know them; start with mpirun or srun, or leave the engine mpi out");
    return;
  }
  if (options.engine == Engine::nccl || options.engine == Engine::store) {
    if (place.size > max_local_ranks)
      throw ConfigError(started + "; without MPI at most " + std::to_string(max_local_ranks) + " ranks can join");
    return;
  }
  if (options.engine != Engine::process)
    throw ConfigError(started + ", and the engine '" + name(options.engine) +
                      "' does not connect processes; use process on one host, mpi or nccl on several");
  if (!place.one_host())
    throw ConfigError(
        started + " on several hosts, but the engine process works on one host only; use the engine nccl, on GPUs (" +
        "--backend cuda), or the engine mpi, with mpirun or srun, or start them on one host");
  if (place.size > max_local_ranks)
    throw ConfigError(started + " on this host; at most " + std::to_string(max_local_ranks) + " can share its memory");
}
/// Implements launch::run.
inline int run(Options const& options, std::function<int(World&)> const& train) {
  open_standard_streams();
  check(options);
  if (SupervisedRank::any({})) return run_once(options, train);
  if (auto const place = detect(); place.size > 1) {
    check(place, options);
    if (options.engine == Engine::mpi) {  // MPI connects the peers, and ends all if one fails
      auto world = launched_world(place, options, Engine::mpi);
      StopWatch const watch(options.on_signal);
      world.stop_request = watch.request();
      return train(world);
    }
    if (options.engine == Engine::store || !place.one_host()) return run_multi_host_rank(place, options, train);
    return run_single_host_rank(place, options, train);
  }
  if (options.nproc > 1) return supervise(options);
  if (options.threads > 1) return run_threads(options, train);
  StopWatch const watch(options.on_signal);
  World world;
  world.stop_request = watch.request();
  world.limits = options.limits;
  world.warn = options.warn;
  return train(world);
}
}  // namespace detail

/// Calls `train(world)` once per rank. By default this process is the only rank. With `options.threads` the ranks are
/// threads of it. With `options.nproc` they are copies of this program, which reach the same call and run `train`
/// there; this process watches them. If torchrun, mpirun or srun has started the ranks, each calls `train` once. A
/// program that starts processes must call it once, and do little before.
/// @returns 0 if all ranks returned 0; else the exit code of the first rank that failed, 128 + signal if it was killed
/// @throws ConfigError for invalid options or an inconsistent environment; exceptions of `train`, except with
/// processes, whose errors go to `options.report`
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
