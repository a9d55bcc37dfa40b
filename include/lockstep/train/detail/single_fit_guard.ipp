// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/detail/single_fit_guard.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE void SingleFitGuard::start(char const* who, std::string const& path, Index resumed) {
  if (std::exchange(begun_, true) && resumed == 0)
    throw ConfigError(std::string(who) + ": " + path +
                      " belongs to an earlier fit, and would be overwritten; give each fit a " + who +
                      " with its own path");
}

}}}  // namespace lockstep::train::detail
