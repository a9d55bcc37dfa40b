// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/optim/detail/parameter_rule.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

LOCKSTEP_INLINE void expect_factor(double factor, char const* setting, std::string_view name) {
  if (factor >= 0 && std::isfinite(factor)) return;
  throw ConfigError("optimizer: `" + std::string(setting) + "` gives " + shortest(factor) + " for the parameter \"" +
                    std::string(name) + "\"; it must be a finite number of at least 0");
}

}}}  // namespace lockstep::optim::detail
