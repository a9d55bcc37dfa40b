// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <string>

#include <lockstep/core/clock.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns a temporary path to write a file to, before it is renamed to `path`. The name is unique among threads and
/// processes, including processes of other containers with equal ids. Open it with "x".
inline std::string partial_path(std::string const& path) {
  return path + "." + std::to_string(::getpid()) + "." + std::to_string(Clock::nanoseconds());
}

}}}  // namespace lockstep::data::detail
