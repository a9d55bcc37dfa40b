// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

LOCKSTEP_COLD_INLINE void expect_setting(char const* optimizer, char const* name, double value, double end) {
  if (value >= 0 && value < end) return;
  throw ConfigError(std::string(optimizer) + ": " + name + " is " + shortest(value) + "; it must be " +
                    (end == 1 ? "at least 0 and below 1" : "a finite number of at least 0"));
}

}}}  // namespace lockstep::optim::detail
