// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/layerwise_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/lamb_rule.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// LAMB, for large batches: Adam whose step for each parameter x, such as the weight of a layer, has the length of x
/// times the rate. With g the clipped gradient of the mean and t the step, from 1:
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   u = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + epsilon) + decay x
///   x = x - rate |x| / |u| u, or x - rate u if |x| or |u| is 0
///
/// All parameters are scaled so, biases too. Norms are summed in double. Untouched rows of tables count as rows with a
/// zero gradient. A step needs whole parameters: ranks cannot share the optimizer's state (`shard_optimizer`), and
/// optim::Averaged does not take LAMB. Moments below 1e-29 (m) and 8e-34 (v) in float32 count as zero.
/// @source You and others: Large Batch Optimization for Deep Learning (arXiv:1904.00962v5), Algorithm 2 with phi(z) =
/// z; version 3 of the paper has no correction of the moments' bias
struct LAMB {
  double learning_rate = 1e-3;        ///< base rate, which schedules and scaling multiply
  double beta1 = 0.9;                 ///< part of m that a step keeps, in [0, 1)
  double beta2 = 0.999;               ///< part of v that a step keeps, in [0, 1)
  double epsilon = 1e-6;              ///< added to the root, at least 0
  double weight_decay = 0.01;         ///< part of x in the update, at least 0
  DecayRule decays = DecayRule::all;  ///< parameters that weight decay applies to, with their factors
  RateRule rates = RateRule::same;    ///< factor on the rate for each parameter

  /// Returns the name in checkpoints and errors.
  [[nodiscard]] static constexpr char const* name() noexcept { return "LAMB"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("beta1", beta1);
    each("beta2", beta2);
    each("epsilon", epsilon);
    each("weight decay", weight_decay);
  }

  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const {
    detail::expect_setting(name(), "learning_rate", learning_rate);
    detail::expect_setting(name(), "epsilon", epsilon);
    detail::expect_setting(name(), "beta1", beta1, 1);
    detail::expect_setting(name(), "beta2", beta2, 1);
    detail::expect_setting(name(), "weight_decay", weight_decay);
  }

  static constexpr int states = 2;                ///< m, v
  static constexpr bool whole_parameters = true;  ///< `step` takes a slice of one whole parameter

  /// Updates a whole parameter in two passes; allocates nothing on the CPU.
  /// @determinism bitwise, for any number of threads
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
};

// Not inline, so that programs that link the library use its code.
template <class Scalar, class Space>
void LAMB::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
  kernel::LayerwiseStep<Space>::template run<states>(
      stream, slice, scalars,
      detail::MakeRule<detail::LambRule<Scalar>, LAMB>{*this, weight_decay * slice.decays, slice.rate});
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_LAMB_STEP(Number, Space)                                                  \
  void LAMB::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                 StepScalars<Space> const* scalars) const
extern template LOCKSTEP_LAMB_STEP(float, HostSpace);
extern template LOCKSTEP_LAMB_STEP(double, HostSpace);
extern template LOCKSTEP_LAMB_STEP(float, CudaSpace);
#endif

}}}  // namespace lockstep::optim
