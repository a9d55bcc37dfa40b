// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/adam_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Common implementation of Adam and AdamW, which differ in where weight decay applies and in its default.
template <Decay decay>
struct AdamWith {
  double learning_rate = 1e-3;  ///< base rate, which schedules and scaling multiply
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = decay == Decay::coupled ? 0 : 0.01;
  DecayRule decays = DecayRule::all;  ///< parameters that weight decay applies to, with their factors
  RateRule rates = RateRule::same;    ///< factor on the rate for each parameter
  UntouchedRows untouched_rows = UntouchedRows::update;

  [[nodiscard]] static constexpr char const* name() noexcept { return decay == Decay::coupled ? "Adam" : "AdamW"; }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    each("beta1", beta1);
    each("beta2", beta2);
    each("epsilon", epsilon);
    each("weight decay", weight_decay);
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  /// @throws ConfigError for a setting out of range
  void check() const {
    expect_setting(name(), "learning_rate", learning_rate);
    expect_setting(name(), "epsilon", epsilon);
    expect_setting(name(), "beta1", beta1, 1);
    expect_setting(name(), "beta2", beta2, 1);
    expect_setting(name(), "weight_decay", weight_decay);
  }

  static constexpr int states = 2;  ///< m, v
  static constexpr bool takes_touched_rows = true;

  /// Updates a slice in one pass: reads and writes 7 elements of memory per parameter, 6 for untouched rows; allocates
  /// nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const;
  /// Returns the factory of the step's rule for a slice, for optimizers that extend this one.
  template <class Scalar, class Space>
  [[nodiscard]] auto rule_of(Slice<Scalar, Space> const& slice) const {
    return MakeRule<AdamRule<decay, Scalar>, AdamWith>{*this, weight_decay * slice.decays, slice.rate};
  }
};

// Not inline, so that programs that link the library use its code.
template <Decay decay>
template <class Scalar, class Space>
void AdamWith<decay>::step(memory::Stream<Space> stream, Slice<Scalar, Space> slice,
                           StepScalars<Space> const* scalars) const {
  kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, rule_of(slice));
}

#if defined(LOCKSTEP_COMPILED)
#define LOCKSTEP_ADAM_STEP(decay, Number, Space)                                                      \
  void AdamWith<decay>::step<Number, Space>(memory::Stream<Space> stream, Slice<Number, Space> slice, \
                                            StepScalars<Space> const* scalars) const
extern template LOCKSTEP_ADAM_STEP(Decay::coupled, float, HostSpace);
extern template LOCKSTEP_ADAM_STEP(Decay::decoupled, float, HostSpace);
extern template LOCKSTEP_ADAM_STEP(Decay::coupled, double, HostSpace);
extern template LOCKSTEP_ADAM_STEP(Decay::decoupled, double, HostSpace);
extern template LOCKSTEP_ADAM_STEP(Decay::coupled, float, CudaSpace);
extern template LOCKSTEP_ADAM_STEP(Decay::decoupled, float, CudaSpace);
#endif

}}}  // namespace lockstep::optim::detail
