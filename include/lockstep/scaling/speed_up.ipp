// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/scaling/speed_up.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

LOCKSTEP_INLINE SpeedUp::SpeedUp(StepProfile const& alone, StepProfile const& together)
    : step_ms_(together.step_ms()),
      ratio_(static_cast<double>(together.processors()) / static_cast<double>(alone.processors())),
      factor_(alone.samples_per_second == 0 ? 0 : together.samples_per_second / alone.samples_per_second),
      shards_(together.shards),
      shards_alone_(alone.shards) {
  auto const samples = together.samples() / alone.samples();
  auto lost = [&](double StepProfile::*phase) { return together.*phase - alone.*phase * samples / ratio_; };
  auto const compute_alone = (alone.forward_ms + alone.backward_ms + alone.pass_ms) * samples / ratio_;
  auto const compute = lost(&StepProfile::forward_ms) + lost(&StepProfile::backward_ms) + lost(&StepProfile::pass_ms);
  slower_ = compute_alone == 0 ? 0 : compute / compute_alone;
  losses_ = {{{"compute", compute},
              {"communication", lost(&StepProfile::communication_ms)},
              {"optimizer", lost(&StepProfile::optimizer_ms)},
              {"data", lost(&StepProfile::data_wait_ms)}}};
  for (std::size_t i = 1; i < losses_.size(); ++i)  // insertion sort: compiles faster, for four entries
    for (auto j = i; j > 0 && losses_[j - 1].ms < losses_[j].ms; --j) std::swap(losses_[j - 1], losses_[j]);
}

LOCKSTEP_INLINE std::string SpeedUp::summary() const {
  auto const baseline = shards_ == 1 && shards_alone_ == 1 ? "the baseline's one"
                        : shards_alone_ == 1               ? "one"
                                                           : "the baseline's " + std::to_string(shards_alone_);
  std::string text = ratio_ > 1 && factor_ > 0 && factor_ < 1 ? "more devices are slower: " : "";
  text += std::to_string(shards_) + (shards_ == 1 ? " device trains " : " devices train ") +
          detail::rounded(factor_, 2) + " times as fast as " + baseline + ", " +
          detail::rounded(100 * efficiency(), 0) + " % of what the processors could give: ";
  if (bound() == "nothing") return text + "no phase of the step loses even 1 % of it.";
  text += why(losses_[0].what) + " (" + cost(losses_[0]) + ")";
  bool first = true;
  for (std::size_t i = 1; i < losses_.size() && losses_[i].ms >= step_ms_ / 100; ++i, first = false)
    text += (first ? "; next: " : ", ") + std::string(losses_[i].what) + " (" + cost(losses_[i]) + ")";
  return text + ".";
}

LOCKSTEP_INLINE std::string SpeedUp::why(std::string const& what) const {
  if (what == "compute")
    return "it is bound by compute, because forward and backward take " + detail::rounded(100 * slower_, 0) +
           " % more time for each sample when all processors work and share caches, memory and clock with each "
           "other and with other programs";
  if (what == "communication")
    return "it is bound by communication that backward does not hide, including waiting for slower ranks";
  if (what == "optimizer")
    return "it is bound by the optimizer, because its step does not get shorter with more devices";
  return "it is bound by data, because batches are not loaded fast enough";
}

LOCKSTEP_INLINE std::string SpeedUp::cost(Loss const& loss) const {
  return detail::rounded(loss.ms, 1) + " of a step's " + detail::rounded(step_ms_, 1) + " ms";
}

}}}  // namespace lockstep::scaling
