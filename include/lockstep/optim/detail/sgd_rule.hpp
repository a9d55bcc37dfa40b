// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// SGD's update of a block, with constants computed once per step.
template <class Element>
class SGDRule {
 public:
  template <class Options, class Scalars>
  constexpr SGDRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        momentum_(static_cast<Element>(o.momentum)),
        decay_(static_cast<Element>(weight_decay)),
        rate_(static_cast<Element>(s.learning_rate)),
        nesterov_(o.kind == Options::Momentum::nesterov),
        leaves_untouched_rows_(o.untouched_rows == UntouchedRows::skip || (momentum_ == 0 && decay_ == 0)) {}

  [[nodiscard]] constexpr bool leaves_untouched_rows() const noexcept { return leaves_untouched_rows_; }

  [[gnu::always_inline]] constexpr void operator()(Index n, Element* __restrict values,
                                                   Element const* __restrict gradients,
                                                   std::array<Element*, 1> state) const {
    Element* __restrict b = state[0];
    if (momentum_ == 0) {
      for (Index i = 0; i < n; ++i) values[i] -= rate_ * (gradients[i] * scale_ + decay_ * values[i]);
    } else if (!nesterov_) {
      for (Index i = 0; i < n; ++i) {
        b[i] = flush_to_zero<30>(momentum_ * b[i] + (gradients[i] * scale_ + decay_ * values[i]));
        values[i] -= rate_ * b[i];
      }
    } else {
      for (Index i = 0; i < n; ++i) {
        auto const g = gradients[i] * scale_ + decay_ * values[i];
        b[i] = flush_to_zero<30>(momentum_ * b[i] + g);
        values[i] -= rate_ * (g + momentum_ * b[i]);
      }
    }
  }

 private:
  Element scale_, momentum_, decay_, rate_;
  bool nesterov_, leaves_untouched_rows_;
};

}}}  // namespace lockstep::optim::detail
