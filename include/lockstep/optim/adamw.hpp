// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>

#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/kernel/square_roots.hpp>
#include <lockstep/optim/optimizer.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Adam with decoupled weight decay: with g the clipped gradient of the mean and t the step, from 1,
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   x = (1 - rate decay) x - rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
/// Decay applies to every parameter, as in PyTorch.
/// @source Loshchilov and Hutter 2019, with PyTorch's defaults
struct AdamW {
  double learning_rate = 1e-3;  ///< what schedules and scaling multiply
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.01;

  static constexpr int states = 2;  ///< m, v

  /// One pass over the slice; reads and writes 7 elements of memory per parameter; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    kernel::OptimizerStep<Space>::template run<states>(
        stream, slice.count, slice.values, slice.gradients, slice.states, scalars,
        [this](StepScalars<Space> const& s) { return Rule<Scalar>(*this, s); });
  }

 private:
  /// The formula over a block, in terms of what the step has in common.
  template <class T>
  class Rule {
   public:
    template <class Space>
    Rule(AdamW const& o, StepScalars<Space> const& s)
        : scale_(static_cast<T>(s.gradient_scale())),
          blend1_(static_cast<T>(1 - o.beta1)),
          keep2_(static_cast<T>(o.beta2)),
          blend2_(static_cast<T>(1 - o.beta2)),
          keep_(static_cast<T>(1 - s.learning_rate * o.weight_decay)),
          rate_(static_cast<T>(s.learning_rate / (1 - std::pow(o.beta1, s.step)))),
          root_scale_(static_cast<T>(1 / std::sqrt(1 - std::pow(o.beta2, s.step)))),
          epsilon_(static_cast<T>(o.epsilon)) {}

    void operator()(Index n, T* __restrict values, T const* __restrict gradients, std::array<T*, 2> state) const {
      T* __restrict m = state[0];
      T* __restrict v = state[1];
      T root[kernel::OptimizerStep<HostSpace>::block];
      for (Index i = 0; i < n; ++i) {
        auto const g = gradients[i] * scale_;
        m[i] += blend1_ * (g - m[i]);
        v[i] = keep2_ * v[i] + blend2_ * g * g;
        root[i] = v[i];
      }
      kernel::square_roots(root, n);
      for (Index i = 0; i < n; ++i) values[i] = keep_ * values[i] - rate_ * m[i] / (root[i] * root_scale_ + epsilon_);
    }

   private:
    T scale_, blend1_, keep2_, blend2_, keep_, rate_, root_scale_, epsilon_;
  };
};
static_assert(Optimizer<AdamW> && Optimizer<AdamW, double>);

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
