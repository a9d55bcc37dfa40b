// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/single_host_rank.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE int run_single_host_rank(Environment const& place, Options const& options,
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
