// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <exception>
#include <functional>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Runs `train` as a rank that is a process. Writes its error to the control page, where it is reported once for all
/// ranks.
/// @returns `train`'s exit code, or the exit code for its exception
int rank_main(World& world, std::function<int(World&)> const& train);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/rank_main.ipp>
#endif
