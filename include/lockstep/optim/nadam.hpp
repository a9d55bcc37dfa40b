// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/detail/nadam_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Adam with Nesterov momentum. With h the clipped gradient of the mean and t the step, from 1:
///   g = h + decay x
///   m = m + (1 - beta1) (g - m)        v = beta2 v + (1 - beta2) g^2
///   u(t) = beta1 (1 - 0.96^(t momentum_decay) / 2)        p = u(1) u(2) ... u(t)
///   x = x - rate ((1 - u(t)) / (1 - p) * g + u(t + 1) / (1 - p u(t + 1)) * m) / (sqrt(v / (1 - beta2^t)) + epsilon)
///
/// With WeightDecay::decoupled, g is h, and x is first multiplied by 1 - rate decay, as in AdamW. Moments below 1e-29
/// (m) and 8e-34 (v) in float32 count as zero.
/// @source Dozat: Incorporating Nesterov momentum into Adam (2016), with PyTorch's defaults
struct NAdam {
  /// Place where weight decay applies.
  enum class WeightDecay {
    coupled,    ///< to the gradient, and so to the moments: an L2 penalty
    decoupled,  ///< to the value alone, as in AdamW: PyTorch's decoupled_weight_decay
  };

  double learning_rate = 2e-3;                           ///< base rate, which schedules and scaling multiply
  double beta1 = 0.9;                                    ///< part of m that a step keeps, in [0, 1)
  double beta2 = 0.999;                                  ///< part of v that a step keeps, in [0, 1)
  double epsilon = 1e-8;                                 ///< added to the root, at least 0
  double weight_decay = 0;                               ///< at least 0
  double momentum_decay = 4e-3;                          ///< of the factors u, at least 0
  WeightDecay kind = WeightDecay::coupled;               ///< place where weight decay applies
  DecayRule decays = DecayRule::all;                     ///< parameters that weight decay applies to, with factors
  RateRule rates = RateRule::same;                       ///< factor on the rate for each parameter
  UntouchedRows untouched_rows = UntouchedRows::update;  ///< treatment of table rows that a step did not use

  /// Returns the name in checkpoints and errors.
  [[nodiscard]] static constexpr char const* name() noexcept { return "NAdam"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("beta1", beta1);
    each("beta2", beta2);
    each("epsilon", epsilon);
    each("weight decay", weight_decay);
    each("momentum decay", momentum_decay);
    each("kind of weight decay", static_cast<Index>(kind));
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const {
    detail::expect_setting(name(), "learning_rate", learning_rate);
    detail::expect_setting(name(), "epsilon", epsilon);
    detail::expect_setting(name(), "beta1", beta1, 1);
    detail::expect_setting(name(), "beta2", beta2, 1);
    detail::expect_setting(name(), "weight_decay", weight_decay);
    detail::expect_setting(name(), "momentum_decay", momentum_decay);
  }

  static constexpr int states = 2;                  ///< m, v
  static constexpr bool takes_touched_rows = true;  ///< `step` skips gradients of untouched rows

  /// Updates a slice in one pass; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
  /// Returns the factory of the step's rule for a slice, for optimizers that extend this one.
  template <class Scalar, class Space>
  [[nodiscard]] auto rule_of(Slice<Scalar, Space> const& slice) const {
    return detail::MakeRule<detail::NAdamRule<Scalar>, NAdam>{*this, weight_decay * slice.decays, slice.rate};
  }
};

// Not inline, so that programs that link the library use its code.
template <class Scalar, class Space>
void NAdam::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
  kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, rule_of(slice));
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_NADAM_STEP(Number, Space)                                                  \
  void NAdam::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                  StepScalars<Space> const* scalars) const
extern template LOCKSTEP_NADAM_STEP(float, HostSpace);
extern template LOCKSTEP_NADAM_STEP(double, HostSpace);
extern template LOCKSTEP_NADAM_STEP(float, CudaSpace);
#endif

}}}  // namespace lockstep::optim
