// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE void open_standard_streams() noexcept {
  for (int stream = 0; stream <= 2; ++stream)
    if (::fcntl(stream, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR));  // takes the lowest number
}

LOCKSTEP_INLINE void check(Options const& options) {
  auto const refuse = [](std::string const& what) { throw ConfigError("launch::run: " + what); };
  for (auto const& [name, count] : {std::pair{"nproc", options.nproc}, std::pair{"threads", options.threads}})
    if (count < 1 || count > max_local_ranks)
      refuse(std::string(name) + " is " + std::to_string(count) + "; it must be from 1 to " +
             std::to_string(max_local_ranks));
  if (options.nproc > 1 && options.threads > 1)
    refuse("ranks are either processes or threads, not both (nproc " + std::to_string(options.nproc) + ", threads " +
           std::to_string(options.threads) + ")");
}

LOCKSTEP_INLINE int supervise(Options const& options) {
  for (int restarts = 0;; ++restarts) {
    Supervisor supervisor(options, restarts);
    auto const code = supervisor.watch();
    if (!supervisor.should_restart()) return code;
  }
}

LOCKSTEP_INLINE int run_process_rank(SupervisedRank const& place, Options const& options,
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

LOCKSTEP_INLINE int run_once(Options const& options, std::function<int(World&)> const& train) {
  static std::atomic<bool> has_run = false;
  auto const place = SupervisedRank::read({});
  if (has_run.exchange(true))
    throw ConfigError(
        "launch::run: this process was started as a rank and runs or has run as one; a program that starts processes "
        "calls launch::run once, around all work of its ranks");
  return run_process_rank(place, options, train);
}

LOCKSTEP_INLINE void check(Environment const& place, Options const& options) {
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

LOCKSTEP_INLINE int run(Options const& options, std::function<int(World&)> const& train) {
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

}}}  // namespace lockstep::launch::detail
