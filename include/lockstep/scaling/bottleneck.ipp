// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/bottleneck.hpp>
#include <lockstep/scaling/lost_time.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE Bottleneck find_bottleneck(StepProfile const& profile) {
  struct Phase {
    char const* name;
    double ms;
    char const* advice;
  };
  std::array<Phase, 4> phases{
      {{"compute", profile.forward_ms + profile.backward_ms + profile.pass_ms,
        "more devices, or a smaller model, would make it faster"},
       {"communication", profile.communication_ms,
        "ranks wait for gradients or for slower ranks: a larger batch per device would make waits rarer"},
       {"optimizer", profile.optimizer_ms, "a larger batch would make the optimizer step less often"},
       {"data", profile.data_wait_ms, "batches come too slowly: more --num-workers would help if cores are free"}}};
  double total = 0;
  for (auto const& phase : phases) total += phase.ms;
  if (total == 0) return {"none", "0 % of the steps were timed here, so the bottleneck is unknown"};
  auto const& largest =
      *std::max_element(phases.begin(), phases.end(), [](Phase const& a, Phase const& b) { return a.ms < b.ms; });
  auto const share = detail::rounded(100 * largest.ms / total, 0) + " %";
  std::string bound = largest.name,
              summary = "the run is bound by " + bound + ", which takes " + share + " of a step; ";
  auto const* advice = largest.advice;
  if (auto const limit = detail::device_limit(profile);
      &largest == phases.data() && limit != detail::DeviceLimit::unknown) {
    bound = detail::name_of(limit);
    advice = detail::remedy_of(limit, profile);
    summary = "the run is bound by " + bound + ": forward and backward take " + share + " of a step; " +
              detail::reason_of(limit, profile) + "; ";
  }
  if (auto const lost = find_lost_time(profile); !lost.empty()) {
    auto const own = [](LostTime const& loss) { return loss.cause != Cause::other_programs; };
    auto const found = std::find_if(lost.begin(), lost.end(), own);
    auto const others = std::find_if_not(lost.begin(), lost.end(), own);
    if (found == lost.end()) return {bound, summary + others->summary, name(others->cause)};
    return {bound, summary + found->summary + (others == lost.end() ? "" : "; besides, " + others->summary),
            name(found->cause)};
  }
  auto const& slowest = profile.slowest;
  if (slowest.lag_ms == 0 || slowest.lag_ms < 0.2 * total) return {bound, summary + advice};
  return {bound, summary + "the others wait for rank " + std::to_string(slowest.rank) + ", whose " + slowest.phase +
                     " takes " + detail::rounded(slowest.ms, 1) + " ms of a step, while the fastest rank's takes " +
                     detail::rounded(slowest.min_ms, 1) + " ms"};
}

}}}  // namespace lockstep::scaling
