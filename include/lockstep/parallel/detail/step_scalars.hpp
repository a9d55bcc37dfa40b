// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Makes a step's scalars where the optimizer reads them: from the settings, the whole step's loss and, for clipping
/// and where there is a loss scale, the gradients of its sum. They are those of all ranks or devices, and a number that
/// is not finite stays so in any sum: all come to the same.
template <class Space>
class MakeStepScalars {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
class MakeStepScalars<HostSpace> {
 public:
  using Space = HostSpace;

  /// Null when the step changes nothing.
  [[nodiscard]] optim::StepScalars<Space> const* operator()(memory::Stream<Space> stream,
                                                            UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                            TensorView<float, 1, Space> gradients,
                                                            std::span<kernel::TouchedRows const> tables,
                                                            optim::LossScaler::State* scale) {
    bool const measures = settings.clip_norm > 0 || scale;
    return complete(settings, loss, measures ? optim::GlobalNorm::of(stream, gradients, tables) : optim::GlobalNorm(),
                    scale);
  }
  /// The same where the norm has been measured, if it clips or there is a scale, which is moved on.
  [[nodiscard]] optim::StepScalars<Space> const* complete(UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                          optim::GlobalNorm const& norm,
                                                          optim::LossScaler::State* scale) {
    scalars_ = {};
    scalars_.step = static_cast<double>(settings.step - (scale ? scale->skipped : 0));
    scalars_.learning_rate = settings.learning_rate;
    scalars_.weight = loss.weight;
    scalars_.skip = !std::isfinite(loss.sum);
    if (scale) scalars_.loss_scale = static_cast<double>(scale->scale);
    auto const unscaled = norm.unscaled(scalars_.loss_scale);
    if (settings.clip_norm > 0) scalars_.clip = unscaled.clip(settings.clip_norm, loss.weight);
    if (settings.clip_norm > 0 || scale) {
      scalars_.norm = loss.weight != 0 ? unscaled.norm() / loss.weight : 0;
      scalars_.skip = scalars_.skip || !norm.finite();
      if (scale && loss.weight != 0) *scale = settings.loss_scaler.after(*scale, !scalars_.skip);
    }
    return scalars_.active() ? &scalars_ : nullptr;
  }
  /// Whether the last step was skipped, for a loss or gradients that are not finite.
  template <class Device>
  [[nodiscard]] bool skipped(Device const&) const noexcept {
    return scalars_.skip;
  }
  /// Of the last step's mean gradient, before it was clipped; 0 where nobody needed it.
  template <class Device>
  [[nodiscard]] double gradient_norm(Device const&) const noexcept {
    return scalars_.norm;
  }

 private:
  optim::StepScalars<Space> scalars_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
