// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Lowers the learning rate when evaluations stop improving. The rate depends only on which evaluations were the best
/// so far. Checkpoints store those, so a resumed run continues with the same rate.
struct Plateau {
  /// Evaluations without improvement after which the rate falls, and falls again; 0: never. It is one more than the
  /// patience of PyTorch's ReduceLROnPlateau, which waits for patience + 1 of them.
  Index patience = 0;
  double factor = 0.1;    ///< factor on the learning rate at each reduction, below 1
  double min_factor = 0;  ///< lower bound of the product of all factors
};

/// Product of the factors at a point of a run.
class PlateauFactor {
 public:
  /// Starts with the factor 1.
  explicit PlateauFactor(Plateau const& plateau) noexcept : plateau_(plateau) {}

  /// Records the next evaluation. `best` tells whether it is the best so far.
  void record(bool best) noexcept {
    since_ = best ? 0 : since_ + 1;
    if (plateau_.patience == 0 || since_ < plateau_.patience) return;
    since_ = 0;
    factor_ = std::max(plateau_.min_factor, factor_ * plateau_.factor);
  }
  /// Returns the current factor on the learning rate, from min_factor to 1.
  [[nodiscard]] double value() const noexcept { return factor_; }

 private:
  Plateau plateau_;
  Index since_ = 0;
  double factor_ = 1;
};

}}}  // namespace lockstep::optim
