// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/detail/rmsprop_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// RMSprop. With h the clipped gradient of the mean:
///   g = h + decay x
///   v = alpha v + (1 - alpha) g^2
///   b = momentum b + g / (sqrt(v) + epsilon)        x = x - rate b
///
/// Without momentum, b is neither read nor written. Moments below 1e-29 (b) and 8e-34 (v) in float32 count as zero.
/// @source PyTorch's RMSprop with `centered` false, and its defaults
struct RMSprop {
  double learning_rate = 1e-2;        ///< base rate, which schedules and scaling multiply
  double alpha = 0.99;                ///< part of v that a step keeps, in [0, 1)
  double epsilon = 1e-8;              ///< added to the root, at least 0
  double momentum = 0;                ///< in [0, 1); 0: none
  double weight_decay = 0;            ///< L2 penalty, which is added to the gradient; at least 0
  DecayRule decays = DecayRule::all;  ///< parameters that weight decay applies to, with their factors
  RateRule rates = RateRule::same;    ///< factor on the rate for each parameter
  UntouchedRows untouched_rows = UntouchedRows::update;  ///< treatment of table rows that a step did not use

  /// Returns the name in checkpoints and errors.
  [[nodiscard]] static constexpr char const* name() noexcept { return "RMSprop"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("alpha", alpha);
    each("epsilon", epsilon);
    each("momentum", momentum);
    each("weight decay", weight_decay);
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const {
    detail::expect_setting(name(), "learning_rate", learning_rate);
    detail::expect_setting(name(), "alpha", alpha, 1);
    detail::expect_setting(name(), "epsilon", epsilon);
    detail::expect_setting(name(), "momentum", momentum, 1);
    detail::expect_setting(name(), "weight_decay", weight_decay);
  }

  static constexpr int states = 2;                  ///< b, v
  static constexpr bool takes_touched_rows = true;  ///< `step` skips gradients of untouched rows

  /// Updates a slice in one pass; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
  /// Returns the factory of the step's rule for a slice, for optimizers that extend this one.
  template <class Scalar, class Space>
  [[nodiscard]] auto rule_of(Slice<Scalar, Space> const& slice) const {
    return detail::MakeRule<detail::RMSpropRule<Scalar>, RMSprop>{*this, weight_decay * slice.decays, slice.rate};
  }
};

// Not inline, so that programs that link the library use its code.
template <class Scalar, class Space>
void RMSprop::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
  kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, rule_of(slice));
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_RMSPROP_STEP(Number, Space)                                                  \
  void RMSprop::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                    StepScalars<Space> const* scalars) const
extern template LOCKSTEP_RMSPROP_STEP(float, HostSpace);
extern template LOCKSTEP_RMSPROP_STEP(double, HostSpace);
extern template LOCKSTEP_RMSPROP_STEP(float, CudaSpace);
#endif

}}}  // namespace lockstep::optim
