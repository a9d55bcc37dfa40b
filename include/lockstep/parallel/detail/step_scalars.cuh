// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/kernel/reduction/sum_of_squares.cuh>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/detail/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Computes the scalars on the device. Weight and norm are not copied to the host, so the host does not wait.
template <>
class MakeStepScalars<CudaSpace> {
 public:
  using Space = CudaSpace;
  /// Address of the sum of squared gradients in device memory; null if the step needs no norm.
  using Norm = double const*;

  MakeStepScalars() = default;
  MakeStepScalars(MakeStepScalars const&) = delete;
  MakeStepScalars& operator=(MakeStepScalars const&) = delete;
  /// Waits, since the last step's scalars may still be copied to the host.
  ~MakeStepScalars() { computed_.wait(); }

  /// Never returns null: only the device knows whether the step changes anything.
  [[nodiscard]] optim::StepScalars<Space> const* operator()(memory::Stream<Space> stream,
                                                            UpdateSettings const& settings, nn::Loss<Space> const& loss,
                                                            TensorView<float, 1, Space> gradients,
                                                            std::span<kernel::TouchedRows const>,
                                                            optim::LossScaler::State* scale) const {
    bool const measures = settings.clip_norm > 0 || scale;
    if (measures)
      kernel::SumOfSquares<Space>::run_on_device<float>(stream, {gradients.data, gradients.extent}, squares_.data());
    return complete(stream, settings, loss, measures ? squares_.data() : nullptr, scale);
  }
  /// Computes the scalars with a given sum of squares.
  [[nodiscard]] optim::StepScalars<Space> const* complete(memory::Stream<Space> stream, UpdateSettings const& settings,
                                                          nn::Loss<Space> const& loss, Norm norm,
                                                          optim::LossScaler::State* scale) const;
  /// Returns as on the host. Waits for the scalars, not for the update that uses them.
  template <class Device>
  [[nodiscard]] bool skipped(Device const&) const {
    if (!has_norm_) return false;
    memory::wait_for(computed_);
    return on_host()->skip;
  }
  template <class Device>
  [[nodiscard]] double gradient_norm(Device const&) const {
    if (!has_norm_) return 0;
    memory::wait_for(computed_);
    return on_host()->norm;
  }

 private:
  [[nodiscard]] optim::StepScalars<Space>* on_host() const noexcept {
    return reinterpret_cast<optim::StepScalars<Space>*>(pinned_.data());
  }

  memory::Buffer<optim::StepScalars<Space>, Space> scalars_{1, memory::CudaResource{}};
  memory::Buffer<double, Space> squares_{1, memory::CudaResource{}};
  memory::Block pinned_ = memory::PinnedResource{}.allocate(sizeof(optim::StepScalars<Space>));
  mutable memory::CudaEvent computed_;
  mutable bool has_norm_ = false;  // whether the last step has measured a norm
};

}}}  // namespace lockstep::parallel::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/detail/step_scalars.icuh>
#endif
