// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/run.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE int run_threads(Options const& options, std::function<int(World&)> const& train) {
  auto const size = options.threads;
  auto const job = new_job();
  auto const segment = SharedSegment::between_threads(size, job);
  auto& control = segment->control();
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(size));
  std::atomic<int> stop_exit_code = 0;  // exit code of ranks that stopped on request
  StopWatch const watch(options.on_signal);

  auto const rank_main = [&](int rank) {
    World world{rank, size, rank, size, Engine::thread, job, segment, options.limits, options.warn};
    world.stop_request = watch.request();
    control.join(rank, 0);
    try {
      int const code = train(world);
      bool const stopped_on_request = world.stop_request && StopRequest::is_stop_exit_code(code);
      if (stopped_on_request) stop_exit_code = code;
      control.end(rank, stopped_on_request ? 0 : code);
    } catch (std::exception const& error) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
      control.end(rank, exit_code(error), 0, error.what());
    } catch (...) {
      errors[static_cast<std::size_t>(rank)] = std::current_exception();
      control.end(rank, 1, 0, "an exception of unknown type");
    }
  };

  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(size));
  try {
    for (int rank = 1; rank < size; ++rank)
      threads.push_back(start_thread("launch", "thread " + std::to_string(rank + 1) + " of " + std::to_string(size),
                                     [&rank_main, rank] { rank_main(rank); }));
  } catch (ConfigError const& error) {
    control.end(static_cast<int>(threads.size()) + 1, 1, 0, error.what());
    for (auto& thread : threads) thread.join();
    throw;
  }
  rank_main(0);
  for (auto& thread : threads) thread.join();

  auto const failed = control.first_failure();
  if (failed < 0) return stop_exit_code;
  if (errors[static_cast<std::size_t>(failed)]) std::rethrow_exception(errors[static_cast<std::size_t>(failed)]);
  return control[failed].exit_code;
}

LOCKSTEP_INLINE int run_single_host_rank(Environment const& place, Options const& options,
                                         std::function<int(World&)> const& train) {
  LocalRendezvous rendezvous(job_key(place), place.rank, place.size, read_secret());
  auto world = launched_world(place, options, Engine::process);
  std::vector<FileDescriptor> peers(static_cast<std::size_t>(place.size));
  if (place.rank == 0) {
    world.job = new_job();
    world.segment = SharedSegment::between_processes(place.size, world.job);
    peers = rendezvous.accept_ranks(world.segment->descriptor(), world.job, options.join_seconds);
  } else {
    auto joined = rendezvous.join(options.join_seconds);
    world.job = joined.job;
    world.segment = SharedSegment::attach(joined.memory.get(), place.size, world.job);
    joined.memory.release();
    peers[0] = std::move(joined.connection);
  }
  RankWatch watch(world.segment->control(), place.rank, std::move(peers), options);
  world.stop_request = watch.request();
  auto const code = rank_main(world, train);
  watch.report();
  if (place.rank == 0) {
    watch.wait_for_peers();
    watch.report();
  }
  return code;
}

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

LOCKSTEP_INLINE int run_once(Lookup variables, Options const& options, std::function<int(World&)> const& train) {
  static std::atomic<bool> has_run = false;
  auto const place = SupervisedRank::read(variables);
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

LOCKSTEP_INLINE int run(Options const& given, std::function<int(World&)> const& train) {
  open_standard_streams();
  check(given);
  auto options = given;
  if (!options.report)
    options.report = [](std::string const& text) {
      std::fprintf(stderr, "%s: %s\n", program_invocation_short_name, text.c_str());
    };
  // A rank whose program has cleared its environment would start ranks of its own, without end.
  auto const variables = SupervisedRank::any({}) ? Lookup() : initial_environment();
  if (SupervisedRank::any(variables)) return run_once(variables, options, train);
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
