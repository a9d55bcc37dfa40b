// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/job_key.hpp>
#include <lockstep/launch/run/detail/launched_world.hpp>
#include <lockstep/launch/run/detail/local_rendezvous.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/rank_watch.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Runs `train` as one of the ranks that another launcher has started on this host. They connect, share memory, and
/// then run like the ranks of a Supervisor. Throws nothing once the ranks are connected; the rank that first detects a
/// failure reports it.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the rendezvous fails
inline int run_single_host_rank(Environment const& place, Options const& options,
                                std::function<int(World&)> const& train) {
  LocalRendezvous rendezvous(job_key(place), place.rank, place.size);
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

}}}  // namespace lockstep::launch::detail
