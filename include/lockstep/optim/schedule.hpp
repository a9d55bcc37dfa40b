// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>
#include <string>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/shortest.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Learning-rate schedule: a pure function of the step, so there is no state to save or restore.
struct Schedule {
  /// Course of the factor after the warm-up.
  enum class Kind {
    constant,             ///< stays at 1 after the warm-up
    cosine,               ///< falls along half a cosine and would reach min_factor one step after the last
    linear,               ///< falls linearly to the same end
    inverse_square_root,  ///< falls with the root of the step, for runs of any length: half at four times the warm-up
  };
  Index warmup_steps = 0;      ///< steps in which the factor rises linearly to 1; 0: none
  Index total_steps = 0;       ///< warm-up included; only for `cosine` and `linear`; 0: the steps of the fit
  Kind kind = Kind::constant;  ///< ignored if `rule` is set
  double min_factor = 0;       ///< final factor of `cosine` and `linear`, in [0, 1]

  /// Your own rule instead of `kind`: the factor of step t, from 1, of n steps, warm-up included. A lambda may capture
  /// constants, such as the steps of phases. It must depend on nothing that changes, so that a resumed run has the same
  /// rates, and all ranks equal ones.
  std::function<double(Index step, Index steps)> rule = nullptr;

  /// Destroys the rule. Not inline: at -O3, g++ 12 warns in programs that options without a rule are uninitialized.
  [[gnu::noinline]] ~Schedule() {}

  /// Returns the factor on the learning rate in step t, from 1. `steps` counts the fit's steps and is used if
  /// total_steps is 0. With w warm-up steps of n steps, p = (t - 1 - w) / (n - w) and m = min_factor:
  ///   t <= w: t / w      then 1, or m + (1 - m) (1 + cos(pi p)) / 2, or m + (1 - m) (1 - p),
  ///   or sqrt(max(1, w) / t), or rule(t, n)
  /// @throws ConfigError if the rule returns a number that is negative or not finite
  [[nodiscard]] double factor(Index step, Index steps = 0) const {
    steps = total_steps > 0 ? total_steps : steps;
    if (step <= warmup_steps) return static_cast<double>(step) / static_cast<double>(warmup_steps);
    if (rule) {
      auto const factor = rule(step, steps);
      if (factor >= 0 && std::isfinite(factor)) return factor;
      throw ConfigError("schedule.rule gives " + shortest(factor) + " for step " + std::to_string(step) + " of " +
                        std::to_string(steps) + "; it must be a finite number of at least 0");
    }
    auto const length = static_cast<double>(std::max<Index>(1, steps - warmup_steps));
    auto const progress = std::min(1.0, static_cast<double>(step - 1 - warmup_steps) / length);
    switch (kind) {
      case Kind::cosine:
        return min_factor + (1 - min_factor) * (1 + std::cos(std::numbers::pi * progress)) / 2;
      case Kind::linear:
        return min_factor + (1 - min_factor) * (1 - progress);
      case Kind::inverse_square_root:
        return std::sqrt(static_cast<double>(std::max<Index>(1, warmup_steps)) / static_cast<double>(step));
      case Kind::constant:
        break;
    }
    return 1;
  }
};

}}}  // namespace lockstep::optim
