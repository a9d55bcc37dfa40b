// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>

#include <lockstep/core/clock.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// Where a file is written that `path` will be once it is whole: a name that no other thread or process has, be it of
/// another container with the same numbers. To be opened with "x".
inline std::string partial_path(std::string const& path) {
  return path + "." + std::to_string(::getpid()) + "." + std::to_string(Clock::nanoseconds());
}

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
