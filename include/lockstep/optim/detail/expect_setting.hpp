// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>
#include <string>

#include <lockstep/core/error.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// @throws ConfigError unless a setting of an optimizer is at least 0 and below `end`
[[gnu::cold]] inline void expect_setting(char const* optimizer, char const* name, double value,
                                         double end = std::numeric_limits<double>::infinity()) {
  if (value >= 0 && value < end) return;
  throw ConfigError(std::string(optimizer) + ": " + name + " is " + std::to_string(value) + "; it must be " +
                    (end == 1 ? "at least 0 and below 1" : "a finite number of at least 0"));
}

}}}  // namespace lockstep::optim::detail
