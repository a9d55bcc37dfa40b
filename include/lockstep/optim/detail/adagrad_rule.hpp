// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/elementwise/square_roots.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Adagrad's update of a block, with constants computed once per step.
template <class Element>
class AdagradRule {
 public:
  template <class Options, class Scalars>
  constexpr AdagradRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        decay_(static_cast<Element>(weight_decay)),
        rate_(static_cast<Element>(s.learning_rate / (1 + (s.step - 1) * o.learning_rate_decay))),
        initial_(static_cast<Element>(o.initial_accumulator_value)),
        epsilon_(static_cast<Element>(o.epsilon)),
        leaves_untouched_rows_(o.untouched_rows == UntouchedRows::skip || decay_ == 0) {}

  [[nodiscard]] constexpr bool leaves_untouched_rows() const noexcept { return leaves_untouched_rows_; }

  template <std::size_t bytes>
  [[gnu::always_inline]] constexpr void operator()(Vectors<bytes> vectors, Index n, Element* values,
                                                   Element const* gradients, std::array<Element*, 1> state) const {
    for (Index at = 0; at < n; at += tile)
      update(vectors, tile < n - at ? tile : n - at, values + at, gradients + at, state[0] + at);
  }
  /// Updates elements on a device, whose threads take one element each.
  constexpr void operator()(Index n, Element* values, Element const* gradients, std::array<Element*, 1> state) const {
    (*this)(Vectors<16>{}, n, values, gradients, state);
  }

 private:
  static constexpr Index tile = 64;  ///< block size: roots get a pass of their own, as in AdamRule

  [[gnu::always_inline]] constexpr void update(auto vectors, Index n, Element* __restrict values,
                                               Element const* __restrict gradients, Element* __restrict v) const {
    alignas(64) Element root[tile], step[tile];
    for (Index i = 0; i < n; ++i) {
      auto const g = step[i] = gradients[i] * scale_ + decay_ * values[i];
      v[i] = flush_positive_to_zero<16>(v[i] + g * g);  // 8e-34: its root vanishes against any epsilon
      root[i] = v[i] + initial_;
    }
    kernel::square_roots(vectors, root, n);
    for (Index i = 0; i < n; ++i) values[i] -= rate_ * step[i] / (root[i] + epsilon_);
  }

  Element scale_, decay_, rate_, initial_, epsilon_;
  bool leaves_untouched_rows_;
};

}}}  // namespace lockstep::optim::detail
