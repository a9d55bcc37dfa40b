// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/adam_rule.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Adam, with weight decay as an L2 penalty: with h the clipped gradient of the mean and t the step, from 1,
///   g = h + decay x
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   x = x - rate / (1 - beta1^t) * m / (sqrt(v / (1 - beta2^t)) + epsilon)
/// The penalty goes through the moments, which weakens it where gradients are large; AdamW decays all alike.
/// Moments below 1e-29 (m) and 8e-34 (v) in float32 count as zero.
/// @source Kingma and Ba 2015, with PyTorch's defaults
struct Adam {
  double learning_rate = 1e-3;  ///< what schedules and scaling multiply
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  DecayRule decays = DecayRule::all;  ///< which parameters weight decay applies to
  UntouchedRows untouched_rows = UntouchedRows::follow;

  /// each(name, value) for the numbers that ranks must have alike.
  void describe(auto&& each) const {
    each("beta1", beta1), each("beta2", beta2), each("epsilon", epsilon), each("weight decay", weight_decay);
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  static constexpr int states = 2;  ///< m, v
  static constexpr bool takes_touched_rows = true;

  /// One pass over the slice; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    using Rule = detail::AdamRule<detail::Decay::coupled, Scalar>;
    kernel::OptimizerStep<Space>::template run<states>(
        stream, slice, scalars, detail::MakeRule<Rule, Adam>{*this, slice.decays ? weight_decay : 0});
  }
};
static_assert(Optimizer<Adam> && Optimizer<Adam, double>);

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
