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
int run_single_host_rank(Environment const& place, Options const& options, std::function<int(World&)> const& train);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/single_host_rank.ipp>
#endif
