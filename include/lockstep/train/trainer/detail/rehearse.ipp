// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/train/trainer/detail/rehearse.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE std::vector<parallel::MicroStep> kinds_of_micro_steps(FitPlan const& plan) {
  auto const count = std::min(plan.accumulation, plan.micro_steps);
  if (count <= 1) return {parallel::MicroStep{}};
  std::vector<parallel::MicroStep> kinds{{.first = true, .last = false}};
  if (count > 2) kinds.push_back({.first = false, .last = false});
  kinds.push_back({.first = false, .last = true});
  return kinds;
}

}}}  // namespace lockstep::train::detail
