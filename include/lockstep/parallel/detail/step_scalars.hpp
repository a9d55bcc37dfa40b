// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cmath>
#include <span>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/optim/loss_scaler.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Computes a step's scalars where the optimizer reads them. Inputs are the settings, the loss of the whole step and,
/// for clipping or a loss scale, the summed gradients. These are equal on all ranks and devices, and a sum preserves
/// nonfinite numbers. Thus all ranks make the same decision.
template <class Space>
class MakeStepScalars {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

template <>
class MakeStepScalars<HostSpace> {
 public:
  using Space = HostSpace;
  /// Measured gradients, for `complete`.
  using Norm = optim::GlobalNorm;

  /// Returns null if the step changes nothing.
  [[nodiscard]] optim::StepScalars<Space> const* operator()(memory::Stream<Space> stream,
                                                            UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                            TensorView<float, 1, Space> gradients,
                                                            std::span<kernel::TouchedRows const> tables,
                                                            optim::LossScaler::State* scale) {
    bool const measures = settings.clip_norm > 0 || scale;
    return complete(stream, settings, loss, measures ? Norm::of(stream, gradients, tables) : Norm(), scale);
  }
  /// Computes the scalars with a given norm, which clipping or a loss scale uses. Updates the loss scale.
  [[nodiscard]] optim::StepScalars<Space> const* complete(memory::Stream<Space>, UpdateSettings const& settings,
                                                          nn::Loss<Space> const& loss, Norm const& norm,
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
  /// Returns whether the last step was skipped because its loss or gradients are not finite.
  template <class Device>
  [[nodiscard]] bool skipped(Device const&) const noexcept {
    return scalars_.skip;
  }
  /// Returns the norm of the last step's mean gradient before clipping, or 0 if it was not needed.
  template <class Device>
  [[nodiscard]] double gradient_norm(Device const&) const noexcept {
    return scalars_.norm;
  }

 private:
  optim::StepScalars<Space> scalars_;
};

}}}  // namespace lockstep::parallel::detail
