// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <lockstep/launch/detail/supervised_rank.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/stop_watch.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

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

}}}  // namespace lockstep::launch::detail
