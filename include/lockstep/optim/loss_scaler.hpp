// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Dynamic loss scaling for activation gradients in float16, which holds magnitudes from 2^-24 to 65504 only. The
/// gradient of the loss is multiplied by a scale. The optimizer, which reads parameter gradients in float32, divides by
/// it. A step with a gradient that is not finite is skipped and shrinks the scale. After `growth_interval` steps
/// without a skip, the scale grows. Scales are powers of two, so scaling changes no bits of numbers within float16's
/// range.
/// @source Micikevicius et al. 2018; the numbers are those of PyTorch's GradScaler
struct LossScaler {
  double start = 0x1p16;         ///< initial scale; all three are powers of two
  double growth = 2;             ///< factor, at least 1
  double backoff = 0.5;          ///< factor, below 1
  Index growth_interval = 2000;  ///< successful steps in a row after which the scale grows

  static constexpr float least = 1;       ///< smallest scale
  static constexpr float most = 0x1p64f;  ///< largest scale

  /// Plain data that a device can change in place. A scale of 0 means no scaling.
  struct State {
    float scale = 0;              ///< factor on the gradient of the loss
    std::int32_t good_steps = 0;  ///< since the last change of the scale
    std::int64_t skipped = 0;     ///< skipped steps of the whole run
    /// Compares all members.
    bool operator==(State const&) const = default;
    /// Returns whether the loss is scaled.
    [[nodiscard]] constexpr explicit operator bool() const noexcept { return scale != 0; }
  };

  /// Returns the state before the first step: scale `start`, no skipped step.
  [[nodiscard]] constexpr State begin() const noexcept { return {static_cast<float>(start)}; }
  /// Returns the state after a step. `finite` tells whether all its gradients were finite.
  [[nodiscard]] constexpr State after(State state, bool finite) const noexcept {
    if (finite && ++state.good_steps < growth_interval) return state;
    auto const next = state.scale * static_cast<float>(finite ? growth : backoff);
    state.scale = next < least ? least : next > most ? most : next;
    state.good_steps = 0;
    state.skipped += finite ? 0 : 1;
    return state;
  }

  /// Checks the numbers.   @throws ConfigError naming the first number that is out of its range
  void check() const;
};

}}}  // namespace lockstep::optim

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/optim/loss_scaler.ipp>
#endif
