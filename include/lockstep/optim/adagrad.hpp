// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/adagrad_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// Adagrad. With h the clipped gradient of the mean and t the step, from 1:
///   g = h + decay x
///   v = v + g^2
///   x = x - rate / (1 + (t - 1) learning_rate_decay) * g / (sqrt(v + initial_accumulator_value) + epsilon)
///
/// Without weight decay, a step changes only rows of a table that it touches, also with UntouchedRows::update. In
/// float32, v counts as zero below 8e-34.
/// @source Duchi, Hazan, Singer: Adaptive subgradient methods (2011), with PyTorch's defaults
struct Adagrad {
  double learning_rate = 1e-2;           ///< base rate, which schedules and scaling multiply
  double learning_rate_decay = 0;        ///< PyTorch's lr_decay, at least 0; the run's schedule multiplies in addition
  double initial_accumulator_value = 0;  ///< added to v, at least 0
  double epsilon = 1e-10;                ///< added to the root, at least 0
  double weight_decay = 0;               ///< L2 penalty, which is added to the gradient; at least 0
  DecayRule decays = DecayRule::all;     ///< parameters that weight decay applies to, with their factors
  RateRule rates = RateRule::same;       ///< factor on the rate for each parameter
  UntouchedRows untouched_rows = UntouchedRows::update;  ///< treatment of table rows that a step did not use

  /// Returns the name in checkpoints and errors.
  [[nodiscard]] static constexpr char const* name() noexcept { return "Adagrad"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("learning rate decay", learning_rate_decay);
    each("initial accumulator value", initial_accumulator_value);
    each("epsilon", epsilon);
    each("weight decay", weight_decay);
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const {
    detail::expect_setting(name(), "learning_rate", learning_rate);
    detail::expect_setting(name(), "learning_rate_decay", learning_rate_decay);
    detail::expect_setting(name(), "initial_accumulator_value", initial_accumulator_value);
    detail::expect_setting(name(), "epsilon", epsilon);
    detail::expect_setting(name(), "weight_decay", weight_decay);
  }

  static constexpr int states = 1;                  ///< v
  static constexpr bool takes_touched_rows = true;  ///< `step` skips gradients of untouched rows

  /// Updates a slice in one pass; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
  /// Returns the factory of the step's rule for a slice, for optimizers that extend this one.
  template <class Scalar, class Space>
  [[nodiscard]] auto rule_of(Slice<Scalar, Space> const& slice) const {
    return detail::MakeRule<detail::AdagradRule<Scalar>, Adagrad>{*this, weight_decay * slice.decays, slice.rate};
  }
};

// Not inline, so that programs that link the library use its code.
template <class Scalar, class Space>
void Adagrad::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
  kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, rule_of(slice));
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_ADAGRAD_STEP(Number, Space)                                                  \
  void Adagrad::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                    StepScalars<Space> const* scalars) const
extern template LOCKSTEP_ADAGRAD_STEP(float, HostSpace);
extern template LOCKSTEP_ADAGRAD_STEP(double, HostSpace);
extern template LOCKSTEP_ADAGRAD_STEP(float, CudaSpace);
#endif

}}}  // namespace lockstep::optim
