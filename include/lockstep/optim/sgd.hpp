// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/optim/optimizer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Stochastic gradient descent: with g the clipped gradient of the mean,
///   b = momentum b + g + decay x        x = x - rate b
/// Without momentum the state is neither read nor written.
/// @source PyTorch's SGD with dampening 0
struct SGD {
  double learning_rate = 1e-3;  ///< what schedules and scaling multiply
  double momentum = 0;
  double weight_decay = 0;

  static constexpr int states = 1;  ///< b

  /// One pass over the slice; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    kernel::OptimizerStep<Space>::template run<states>(
        stream, slice.count, slice.values, slice.gradients, slice.states, scalars,
        [this](StepScalars<Space> const& s) { return Rule<Scalar>(*this, s); });
  }

 private:
  template <class T>
  class Rule {
   public:
    template <class Space>
    Rule(SGD const& o, StepScalars<Space> const& s)
        : scale_(static_cast<T>(s.gradient_scale())),
          momentum_(static_cast<T>(o.momentum)),
          decay_(static_cast<T>(o.weight_decay)),
          rate_(static_cast<T>(s.learning_rate)) {}

    void operator()(Index n, T* __restrict values, T const* __restrict gradients, std::array<T*, 1> state) const {
      T* __restrict b = state[0];
      if (momentum_ == 0) {
        for (Index i = 0; i < n; ++i) values[i] -= rate_ * (gradients[i] * scale_ + decay_ * values[i]);
      } else {
        for (Index i = 0; i < n; ++i) {
          b[i] = momentum_ * b[i] + (gradients[i] * scale_ + decay_ * values[i]);
          values[i] -= rate_ * b[i];
        }
      }
    }

   private:
    T scale_, momentum_, decay_, rate_;
  };
};
static_assert(Optimizer<SGD> && Optimizer<SGD, double>);

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
