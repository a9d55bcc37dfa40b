// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <limits>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// @throws ConfigError unless a setting of an optimizer is at least 0 and below `end`
[[gnu::cold]] void expect_setting(char const* optimizer, char const* name, double value,
                                  double end = std::numeric_limits<double>::infinity());

}}}  // namespace lockstep::optim::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/optim/detail/expect_setting.ipp>
#endif
