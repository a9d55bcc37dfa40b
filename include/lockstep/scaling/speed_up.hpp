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
  /// Compares two runs.
  /// @param alone the baseline
  SpeedUp(StepProfile const& alone, StepProfile const& together);

  /// Returns the ratio of samples per second, together to alone.
  [[nodiscard]] double factor() const noexcept { return factor_; }
  /// Returns the fraction of perfect scaling to all processors; 1 is perfect.
  [[nodiscard]] double efficiency() const noexcept { return factor_ / ratio_; }
  /// Returns the largest loss: "compute", "communication", "optimizer", "data", or "nothing" below 1 % of the step.
  [[nodiscard]] std::string bound() const { return losses_[0].ms < step_ms_ / 100 ? "nothing" : losses_[0].what; }

  /// Returns the milliseconds of a step that the largest loss takes; 0 or less without a loss.
  [[nodiscard]] double lost_ms() const noexcept { return losses_[0].ms; }

  /// Returns one sentence that names the limit of the speed-up.
  [[nodiscard]] std::string summary() const;

 private:
  struct Loss {
    char const* what = "";
    double ms = 0;
  };

  [[nodiscard]] std::string why(std::string const& what) const;
  [[nodiscard]] std::string cost(Loss const& loss) const;

  double step_ms_;
  double ratio_;
  double factor_;
  double slower_ = 0;
  Index shards_, shards_alone_;
  std::array<Loss, 4> losses_;
};

}}}  // namespace lockstep::scaling

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/scaling/speed_up.ipp>
#endif
