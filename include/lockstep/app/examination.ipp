// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/app/examination.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace app {

LOCKSTEP_INLINE Index Examination::steps_within(double seconds, train::RunRecord const& record) {
  double longest = 0;
  for (auto const& rank : record.ranks)
    longest = std::max(longest, rank.data_wait + rank.compute + rank.communication + rank.optimizer);
  auto const step = longest / static_cast<double>(record.steps);
  auto const most = record.phases.pass > 0 ? max_gpu_steps : max_steps;
  if (step * static_cast<double>(most) <= seconds) return most;
  return std::max(min_steps, static_cast<Index>(seconds / step));
}

}}}  // namespace lockstep::app
