// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/kernel/optimizer_step.hpp>
#include <lockstep/optim/decay_rule.hpp>
#include <lockstep/optim/detail/flush.hpp>
#include <lockstep/optim/optimizer.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep::inline LOCKSTEP_ABI::optim {

/// Stochastic gradient descent: with h the clipped gradient of the mean,
///   g = h + decay x        b = momentum b + g        x = x - rate b
/// With Nesterov's momentum x = x - rate (g + momentum b). Without momentum the state is neither read nor written.
/// A momentum below 1e-29 in float32 counts as zero.
/// @source PyTorch's SGD with dampening 0
struct SGD {
  enum class Momentum {
    heavy_ball,  ///< steps along b
    nesterov,    ///< looks one step of b ahead
  };
  double learning_rate = 1e-3;  ///< what schedules and scaling multiply
  double momentum = 0;
  double weight_decay = 0;
  Momentum kind = Momentum::heavy_ball;
  DecayRule decays = DecayRule::all;  ///< which parameters weight decay applies to
  UntouchedRows untouched_rows = UntouchedRows::follow;

  static constexpr int states = 1;  ///< b
  static constexpr bool takes_touched_rows = true;

  /// One pass over the slice; allocates nothing.
  /// @determinism bitwise, for any number of threads and any slicing
  template <class Scalar, class Space>
  void step(memory::Stream<Space> stream, Slice<Scalar, Space> slice, StepScalars<Space> const* scalars) const {
    kernel::OptimizerStep<Space>::template run<states>(stream, slice, scalars, [&](StepScalars<Space> const& s) {
      return Rule<Scalar>(*this, s, slice.decays ? weight_decay : 0);
    });
  }

 private:
  template <class T>
  class Rule {
   public:
    template <class Space>
    Rule(SGD const& o, StepScalars<Space> const& s, double weight_decay)
        : scale_(static_cast<T>(s.gradient_scale())),
          momentum_(static_cast<T>(o.momentum)),
          decay_(static_cast<T>(weight_decay)),
          rate_(static_cast<T>(s.learning_rate)),
          kind_(o.kind),
          stays_(o.untouched_rows == UntouchedRows::stay || (momentum_ == 0 && decay_ == 0)) {}

    [[nodiscard]] bool leaves_untouched_rows() const noexcept { return stays_; }

    void operator()(Index n, T* __restrict values, T const* __restrict gradients, std::array<T*, 1> state) const {
      T* __restrict b = state[0];
      if (momentum_ == 0) {
        for (Index i = 0; i < n; ++i) values[i] -= rate_ * (gradients[i] * scale_ + decay_ * values[i]);
      } else if (kind_ == Momentum::heavy_ball) {
        for (Index i = 0; i < n; ++i) {
          b[i] = detail::flush<30>(momentum_ * b[i] + (gradients[i] * scale_ + decay_ * values[i]));
          values[i] -= rate_ * b[i];
        }
      } else {
        for (Index i = 0; i < n; ++i) {
          auto const g = gradients[i] * scale_ + decay_ * values[i];
          b[i] = detail::flush<30>(momentum_ * b[i] + g);
          values[i] -= rate_ * (g + momentum_ * b[i]);
        }
      }
    }

   private:
    T scale_, momentum_, decay_, rate_;
    Momentum kind_;
    bool stays_;
  };
};
static_assert(Optimizer<SGD> && Optimizer<SGD, double>);

}  // namespace lockstep::inline LOCKSTEP_ABI::optim
