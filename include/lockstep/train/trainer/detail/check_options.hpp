// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/train/trainer/fit_options.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

/// Checks the options of a fit.   @throws ConfigError with name, value and rule
void check_options(FitOptions const& options);

}}}  // namespace lockstep::train::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/train/trainer/detail/check_options.ipp>
#endif
