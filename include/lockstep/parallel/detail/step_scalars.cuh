// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/kernel/optimizer_step.cuh>
#include <lockstep/kernel/sum_of_squares.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/parallel/detail/step_scalars.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Neither the weight nor the norm comes to the host: nobody waits.
template <>
class MakeStepScalars<CudaSpace> {
 public:
  using Space = CudaSpace;

  /// Never null: whether the step changes anything is known on the device alone.
  [[nodiscard]] optim::StepScalars<Space> const* operator()(memory::Stream<Space> stream,
                                                            UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                            TensorView<float, 1, Space> gradients,
                                                            std::span<kernel::TouchedRows const>,
                                                            optim::LossScaler::State* scale) const {
    optim::StepScalars<Space> known;
    known.step = static_cast<double>(settings.step);
    known.learning_rate = settings.learning_rate;
    bool const measures = settings.clip_norm > 0 || scale;
    if (measures)
      kernel::SumOfSquares<Space>::run_on_device<float>(stream, {gradients.data, gradients.extent}, squares_.data());
    kernel::OptimizerStep<Space>::complete(stream, known, loss.totals + 1, settings.clip_norm,
                                           measures ? squares_.data() : nullptr, settings.loss_scaler, scale,
                                           scalars_.data());
    return scalars_.data();
  }
  /// As on the host. Waits for the device.
  template <class Device>
  [[nodiscard]] bool skipped(Device const& device) const {
    return device.get(scalars_.data()).skip;
  }

 private:
  memory::Buffer<optim::StepScalars<Space>, Space> scalars_{1, memory::CudaResource{}};
  memory::Buffer<double, Space> squares_{1, memory::CudaResource{}};
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
