// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <signal.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <functional>
#include <string>

#include <lockstep/launch/detail/rank_place.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/rank_main.hpp>
#include <lockstep/launch/run/detail/stop_watch.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Runs `train` as one rank of a supervisor. The supervisor reports errors once for all ranks. Throws nothing once the
/// rank has joined.
/// @returns `train`'s exit code, or the exit code for its exception
/// @throws ConfigError if the supervisor or its memory is gone
int run_process_rank(RankPlace const& place, Options const& options, std::function<int(World&)> const& train);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/process_rank.ipp>
#endif
