// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/prediction.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Reasons for which the steps of a run on CPUs take longer than their arithmetic.
enum class Cause {
  none,              ///< no time is lost
  slow_data,         ///< batches come too slowly
  lock_contention,   ///< loader threads wait for each other's locks
  slow_rank,         ///< the others wait for one rank
  oversubscription,  ///< more training threads than processors
  processor_quota,   ///< the quota of the control group stops the run
  other_programs,    ///< other programs use the processors
  uneven_batches,    ///< ranks wait for each other because steps differ in length
  small_batch,       ///< update and communication of the parameters, which each step repeats
  small_model,       ///< the start of communication, which does not depend on the model's size
};

/// Returns the name of a cause: "slow data", "lock contention" and so on; "none".
[[nodiscard]] char const* name(Cause cause) noexcept;

/// Time that a step loses for one reason.
struct LostTime {
  Cause cause = Cause::none;  ///< what loses the time
  double ms = 0;              ///< estimate for one step; without effects of other programs, except for other_programs
  std::string summary;        ///< clause with the evidence and the remedy
};

/// Fraction of a rank's own work and the loss together below which a loss is not reported.
inline constexpr double least_lost_time = 0.2;

/// Returns what the steps of a run lose, the largest first. Empty for a run without StepProfile::ranks, for example on
/// a GPU. A rank's own work is its processor time in forward and backward and its update.
[[nodiscard]] std::vector<LostTime> find_lost_time(StepProfile const& profile);

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/lost_time.ipp>
#endif
