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

/// RMSprop's update of a block, with constants computed once per step.
template <class Element>
class RMSpropRule {
 public:
  template <class Options, class Scalars>
  constexpr RMSpropRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        keep_(static_cast<Element>(o.alpha)),
        blend_(static_cast<Element>(1 - o.alpha)),
        momentum_(static_cast<Element>(o.momentum)),
        decay_(static_cast<Element>(weight_decay)),
        rate_(static_cast<Element>(s.learning_rate)),
        epsilon_(static_cast<Element>(o.epsilon)),
        leaves_untouched_rows_(o.untouched_rows == UntouchedRows::skip) {}

  [[nodiscard]] constexpr bool leaves_untouched_rows() const noexcept { return leaves_untouched_rows_; }

  template <std::size_t bytes>
  [[gnu::always_inline]] constexpr void operator()(Vectors<bytes> vectors, Index n, Element* values,
                                                   Element const* gradients, std::array<Element*, 2> state) const {
    for (Index at = 0; at < n; at += tile)
      update(vectors, tile < n - at ? tile : n - at, values + at, gradients + at, state[0] + at, state[1] + at);
  }
  /// Updates elements on a device, whose threads take one element each.
  constexpr void operator()(Index n, Element* values, Element const* gradients, std::array<Element*, 2> state) const {
    (*this)(Vectors<16>{}, n, values, gradients, state);
  }

 private:
  static constexpr Index tile = 64;  ///< block size: roots get a pass of their own, as in AdamRule

  [[gnu::always_inline]] constexpr void update(auto vectors, Index n, Element* __restrict values,
                                               Element const* __restrict gradients, Element* __restrict b,
                                               Element* __restrict v) const {
    alignas(64) Element root[tile], step[tile];
    for (Index i = 0; i < n; ++i) {
      auto const g = step[i] = gradients[i] * scale_ + decay_ * values[i];
      root[i] = v[i] =
          flush_positive_to_zero<16>(keep_ * v[i] + blend_ * g * g);  // 8e-34: its root vanishes against any epsilon
    }
    kernel::square_roots(vectors, root, n);
    if (momentum_ == 0) {
      for (Index i = 0; i < n; ++i) values[i] -= rate_ * step[i] / (root[i] + epsilon_);
    } else {
      for (Index i = 0; i < n; ++i) {
        b[i] = flush_to_zero<30>(momentum_ * b[i] + step[i] / (root[i] + epsilon_));  // 1e-29 in float32
        values[i] -= rate_ * b[i];
      }
    }
  }

  Element scale_, keep_, blend_, momentum_, decay_, rate_, epsilon_;
  bool leaves_untouched_rows_;
};

}}}  // namespace lockstep::optim::detail
