// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <utility>

#include <lockstep/scaling/step_profile.hpp>
#include <lockstep/train/logs/run_record.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

namespace detail {

/// Adds each rank's step and the processors that ranks share.
void add_loads(StepProfile& out, train::RunRecord const& record);

}  // namespace detail

/// Returns the rank for which the others wait.
[[nodiscard]] SlowestRank slowest_of(train::RunRecord const& record);

/// Returns the average step of a run's record.
[[nodiscard]] StepProfile profile_of(train::RunRecord const& record);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/profile_of.ipp>
#endif
