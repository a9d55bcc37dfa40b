// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/nn/loss.hpp>
#include <lockstep/optim/global_norm.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Makes a step's scalars where the optimizer reads them: from the settings, the whole step's loss and, for clipping,
/// the gradients of its sum.
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
                                                            std::span<kernel::TouchedRows const> tables) {
    return complete(settings, loss,
                    settings.clip_norm > 0 ? optim::GlobalNorm::of(stream, gradients, tables) : optim::GlobalNorm());
  }
  /// The same where the norm has been measured, if it clips.
  [[nodiscard]] optim::StepScalars<Space> const* complete(UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                          optim::GlobalNorm const& norm) {
    scalars_ = {};
    scalars_.step = static_cast<double>(settings.step);
    scalars_.learning_rate = settings.learning_rate;
    scalars_.weight = loss.weight;
    if (settings.clip_norm > 0) {
      scalars_.clip = norm.clip(settings.clip_norm, loss.weight);
      scalars_.skip = !norm.finite();
    }
    return scalars_.active() ? &scalars_ : nullptr;
  }

 private:
  optim::StepScalars<Space> scalars_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
