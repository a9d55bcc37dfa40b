// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/adam_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/detail/make_rule.hpp>
#include <lockstep/optim/rate_rule.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim::detail {

/// Adam and AdamW, which differ in where weight decay enters and in how strong it is unless told.
template <Decay decay>
struct AdamWith {
  double learning_rate = 1e-3;  ///< what schedules and scaling multiply
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = decay == Decay::coupled ? 0 : 0.01;
  DecayRule decays = DecayRule::all;  ///< which parameters weight decay applies to, and how strongly
  RateRule rates = RateRule::same;    ///< what the rate is multiplied by, for each parameter
  UntouchedRows untouched_rows = UntouchedRows::follow;

  [[nodiscard]] static constexpr char const* name() noexcept { return decay == Decay::coupled ? "Adam" : "AdamW"; }
  /// each(name, value) for the numbers that ranks must have alike.
  void describe(auto&& each) const {
    each("beta1", beta1), each("beta2", beta2), each("epsilon", epsilon), each("weight decay", weight_decay);
    each("untouched rows", static_cast<Index>(untouched_rows));
  }

  /// @throws ConfigError for a setting out of range
  void check() const {
    expect_setting(name(), "learning_rate", learning_rate), expect_setting(name(), "epsilon", epsilon);
    expect_setting(name(), "beta1", beta1, 1), expect_setting(name(), "beta2", beta2, 1);
    expect_setting(name(), "weight_decay", weight_decay);
  }

  static constexpr int states = 2;  ///< m, v
  static constexpr bool takes_touched_rows = true;

  /// One pass over the slice; reads and writes 7 elements of memory per parameter, 6 where a row was not touched;
  /// allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, rule_of(slice));
  }
  /// What makes the step's rule for a slice, for an optimizer that does more with it.
  template <class Scalar, class Space>
  [[nodiscard]] auto rule_of(Slice<Scalar, Space> const& slice) const {
    return MakeRule<AdamRule<decay, Scalar>, AdamWith>{*this, weight_decay * slice.decays, slice.rate};
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::optim::detail
