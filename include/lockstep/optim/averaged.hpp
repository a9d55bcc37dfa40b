// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstddef>
#include <string>
#include <utility>

#include <lockstep/kernel/optimizer/optimizer_step.hpp>
#include <lockstep/memory/stream.hpp>
#include <lockstep/optim/detail/averaged_rule.hpp>
#include <lockstep/optim/detail/expect_setting.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/slice.hpp>
#include <lockstep/optim/step_scalars.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim {

/// An optimizer that also keeps an exponential moving average of the parameters:
///   a = a + max(1 - decay, 1 / t) (x - a) after step t, from 1
///
/// Until step 1 / (1 - decay), a is thus the mean of all values so far. Example:
/// `Averaged{AdamW{.learning_rate = 1e-3}, 0.999}`. The optimizer's settings are members. The average takes one more
/// state, x - a: checkpoints contain it, and ranks shard it if they shard the optimizer. Trainers evaluate the average,
/// train::KeepBest saves it, and train::averages returns it. With UntouchedRows::skip, untouched rows of a table keep
/// their average. `Base` may be an optimizer of your own.
/// @source Polyak, Juditsky: Acceleration of stochastic approximation by averaging (1992)
template <class Base>
struct Averaged : Base {
  double decay = 0.999;  ///< decay of the average, in [0, 1); 1 / (1 - decay) is the number of steps that it spans

  /// @param decay_of_average the member decay
  explicit Averaged(Base optimizer, double decay_of_average = 0.999)
      : Base(std::move(optimizer)), decay(decay_of_average) {}

  static_assert(parts<Base>() == 1,
                "Lockstep: optim::Averaged takes one optimizer; average each of optim::Partitioned: "
                "Partitioned{Averaged{SGD{}}, Averaged{AdamW{}}, rule}");
  static_assert(!steps_whole_parameters<Base>() || parts<Base>() > 1,
                "Lockstep: optim::Averaged updates blocks of parameters, and this optimizer, such as LAMB or Muon, "
                "needs whole ones; average the parameters by trainer.copy_parameters with a share");
  static constexpr int states = Base::states + 1;  ///< those of the optimizer, then x - a
  static constexpr bool averages = true;           ///< evaluations use the average

  /// Returns "Averaged " and the optimizer's name, as in checkpoints.
  [[nodiscard]] static std::string name() { return "Averaged " + name_of<Base>(); }
  /// Returns the learning rate that `learning_rate` has unless a program sets it.
  [[nodiscard]] static constexpr double default_learning_rate() requires std::default_initializable<Base> {
    return Base{}.learning_rate;
  }
  /// Calls each(name, value) for the settings that must be equal on all ranks.
  void describe(auto&& each) const {
    optim::describe(static_cast<Base const&>(*this), each);
    each("decay of the average", decay);
  }
  /// Checks the settings.   @throws ConfigError for a setting out of range
  void check() const {
    optim::check_settings(static_cast<Base const&>(*this));
    detail::expect_setting("Averaged", "decay", decay, 1);
  }

  /// Updates a slice in one pass; allocates nothing. An optimizer of your own without `rule_of(slice)` steps on blocks
  /// of the slice, on the CPU.
  /// @determinism bitwise, for any number of threads and any slicing, if the optimizer's step is elementwise
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    if constexpr (requires { this->rule_of(slice); }) {
      kernel::OptimizerStep<Space>::template run<states>(
          stream, slice, scalars,
          detail::MakeAveragedRule<decltype(this->rule_of(slice)), Scalar, static_cast<std::size_t>(Base::states)>{
              this->rule_of(slice), decay});
    } else {
      static_assert(Space::host_accessible,
                    "Lockstep: on a GPU, optim::Averaged needs an optimizer with rule_of(slice), whose rule "
                    "kernel::OptimizerStep runs; see docs/reference/optimizer.md");
      if (scalars->active()) detail::step_averaged(static_cast<Base const&>(*this), stream, slice, scalars, decay);
    }
  }
};
/// Takes the type of the optimizer from the first argument.
template <class Base>
Averaged(Base) -> Averaged<Base>;
/// Takes the type of the optimizer from the first argument.
template <class Base>
Averaged(Base, double) -> Averaged<Base>;

/// Whether an optimizer keeps averages, as its last state.
template <class Base>
inline constexpr bool averages = false;
/// Whether this optimizer keeps averages: its own member says so.
template <class Base>
requires requires { Base::averages; }
inline constexpr bool averages<Base> = Base::averages;

}}}  // namespace lockstep::optim
