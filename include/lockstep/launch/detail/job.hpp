// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <sys/random.h>
#include <unistd.h>

#include <cstdint>

#include <lockstep/core/clock.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns a random number that identifies this run.
[[nodiscard]] inline std::uint64_t new_job() noexcept {
  std::uint64_t job = 0;
  if (::getrandom(&job, sizeof job, GRND_NONBLOCK) != sizeof job)
    job =
        static_cast<std::uint64_t>(Clock::nanoseconds()) * 0x9e3779b97f4a7c15 + static_cast<std::uint64_t>(::getpid());
  return job;
}

}}}  // namespace lockstep::launch::detail
