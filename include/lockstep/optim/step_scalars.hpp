// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Scalars that differ from step to step. They are in memory of `Space`, so that a device's weight never has to reach
/// the host.
template <class Space>
struct StepScalars {
  double step = 1;           ///< from 1; steps skipped for float16 do not count, steps of weight 0 do
  double learning_rate = 0;  ///< after schedule and scaling
  double weight = 1;         ///< of the whole step: gradients are of the sum; the mean's is gradient / weight
  double clip = 1;           ///< factor on the mean's gradient
  bool skip = false;         ///< change nothing in this step
  double loss_scale = 1;     ///< power of two by which gradients have been multiplied
  double norm = 0;           ///< of the mean's gradient before clipping; 0 if not measured

  /// Returns false for a skipped step, and for a step in which no rank had a sample. Such a step changes nothing.
  [[nodiscard]] constexpr bool active() const noexcept { return !skip && weight != 0; }
  /// Returns the factor on gradients.
  [[nodiscard]] constexpr double gradient_scale() const noexcept { return clip / (weight * loss_scale); }
};

}}}  // namespace lockstep::optim
