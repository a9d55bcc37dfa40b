// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string>
#include <utility>

#include <lockstep/scaling/detail/rounded.hpp>
#include <lockstep/scaling/step_profile.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace scaling {

/// Speed-up of a run on several shards over a run on one shard, or on another number, and its losses. Let r =
/// processors together / alone, and scale a step of the lone run to equally many samples. Then a phase loses
///   phase together - phase alone / r
/// milliseconds per step. Zero is perfect scaling. A phase that every rank repeats in full loses almost all of its
/// time.
class SpeedUp {
 public:
  SpeedUp(StepProfile const& alone, StepProfile const& together)
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

  /// Returns the ratio of samples per second, together to alone.
  [[nodiscard]] double factor() const noexcept { return factor_; }
  /// Returns the fraction of perfect scaling to all processors; 1 is perfect.
  [[nodiscard]] double efficiency() const noexcept { return factor_ / ratio_; }
  /// Returns the largest loss: "compute", "communication", "optimizer", "data", or "nothing" below 1 % of the step.
  [[nodiscard]] std::string bound() const { return losses_[0].ms < step_ms_ / 100 ? "nothing" : losses_[0].what; }

  /// Returns one sentence that names the limit of the speed-up.
  [[nodiscard]] std::string says() const {
    auto const baseline = shards_alone_ == 1 ? "one" : "the baseline's " + std::to_string(shards_alone_);
    std::string text = ratio_ > 1 && factor_ > 0 && factor_ < 1 ? "more devices are slower: " : "";
    text += std::to_string(shards_) + (shards_ == 1 ? " device trains " : " devices train ") +
            detail::rounded(factor_, 2) + " times as fast as " + baseline + ", " +
            detail::rounded(100 * efficiency(), 0) + " % of what the processors could give: ";
    if (bound() == "nothing") return text + "no phase of the step loses even 1 % of it.";
    text += why(losses_[0].what) + " (" + cost(losses_[0]) + ")";
    bool first = true;
    for (std::size_t i = 1; i < losses_.size() && losses_[i].ms >= step_ms_ / 100; ++i, first = false)
      text += (first ? "; after that come " : ", ") + std::string(losses_[i].what) + " (" + cost(losses_[i]) + ")";
    return text + ".";
  }

 private:
  struct Loss {
    char const* what = "";
    double ms = 0;
  };

  [[nodiscard]] std::string why(std::string const& what) const {
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
  [[nodiscard]] std::string cost(Loss const& loss) const {
    return detail::rounded(loss.ms, 1) + " of a step's " + detail::rounded(step_ms_, 1) + " ms";
  }

  double step_ms_;
  double ratio_;
  double factor_;
  double slower_ = 0;
  Index shards_, shards_alone_;
  std::array<Loss, 4> losses_;
};

}}}  // namespace lockstep::scaling
