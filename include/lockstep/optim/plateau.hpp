// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Lowers the learning rate where evaluations no longer become better. Which are the best ones is all that it knows of
/// them, and those are remembered: a run that goes on has the rate that it had.
struct Plateau {
  Index patience = 0;     ///< evaluations in a row, none the best, after which it falls, and they count anew; 0 never
  double factor = 0.1;    ///< what it is multiplied by then, below 1
  double min_factor = 0;  ///< the product of these stays at least at this
};

/// That product, at a moment of a run.
class PlateauFactor {
 public:
  explicit PlateauFactor(Plateau const& plateau) noexcept : plateau_(plateau) {}

  /// The next evaluation, and whether it is the best so far.
  void take(bool best) noexcept {
    since_ = best ? 0 : since_ + 1;
    if (plateau_.patience == 0 || since_ < plateau_.patience) return;
    since_ = 0;
    factor_ = std::max(plateau_.min_factor, factor_ * plateau_.factor);
  }
  [[nodiscard]] double value() const noexcept { return factor_; }

 private:
  Plateau plateau_;
  Index since_ = 0;
  double factor_ = 1;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
