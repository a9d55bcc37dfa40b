// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <atomic>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/launch/detail/job.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/run/detail/stop_watch.hpp>
#include <lockstep/launch/stop_request.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Runs `train` once per rank on threads of this process. The calling thread is rank 0.
/// @returns 0, or the exit code of the rank that failed first; without a failure, the code of ranks that stopped on
/// request
/// @throws the first failed rank's exception, after all ranks have ended; the others got RankLost while they waited for
/// it
int run_threads(Options const& options, std::function<int(World&)> const& train);

}}}  // namespace lockstep::launch::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/launch/run/detail/thread_ranks.ipp>
#endif
