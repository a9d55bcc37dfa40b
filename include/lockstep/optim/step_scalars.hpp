// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// What differs from step to step. It lies where `Space` says, so that a device's weight need not come to the host.
template <class Space>
struct StepScalars {
  double step = 1;           ///< from 1; steps skipped for float16 do not count, those of weight 0 do
  double learning_rate = 0;  ///< after schedule and scaling
  double weight = 1;         ///< of the whole step: gradients are those of a sum, gradient / weight that of the mean
  double clip = 1;           ///< factor that the mean's gradient is multiplied by
  bool skip = false;         ///< leave everything as it is
  double loss_scale = 1;     ///< that gradients have been multiplied by: a power of two
  double norm = 0;           ///< of the mean's gradient, before it is clipped; 0 where it was not measured

  /// A step in which no rank had a sample changes nothing.
  [[nodiscard]] constexpr bool active() const noexcept { return !skip && weight != 0; }
  /// What gradients are multiplied by.
  [[nodiscard]] constexpr double gradient_scale() const noexcept { return clip / (weight * loss_scale); }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
