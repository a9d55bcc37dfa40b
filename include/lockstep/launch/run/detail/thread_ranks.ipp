// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/thread_ranks.hpp>

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

}}}  // namespace lockstep::launch::detail
