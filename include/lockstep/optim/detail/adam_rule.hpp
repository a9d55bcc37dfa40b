// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/elementwise/square_roots.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Where weight decay applies.
enum class Decay {
  coupled,    ///< to the gradient, and so to the moments
  decoupled,  ///< to the value alone
};

/// Adam's update of a block, with constants computed once per step.
template <Decay decay, class Element>
class AdamRule {
 public:
  template <class Options, class Scalars>
  constexpr AdamRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        blend1_(static_cast<Element>(1 - o.beta1)),
        keep2_(static_cast<Element>(o.beta2)),
        blend2_(static_cast<Element>(1 - o.beta2)),
        decay_(static_cast<Element>(decay == Decay::coupled ? weight_decay : 1 - s.learning_rate * weight_decay)),
        rate_(static_cast<Element>(s.learning_rate / (1 - std::pow(o.beta1, s.step)))),
        root_scale_(static_cast<Element>(1 / std::sqrt(1 - std::pow(o.beta2, s.step)))),
        epsilon_(static_cast<Element>(o.epsilon)),
        leaves_untouched_rows_(o.untouched_rows == UntouchedRows::skip) {}

  [[nodiscard]] constexpr bool leaves_untouched_rows() const noexcept { return leaves_untouched_rows_; }

  template <std::size_t bytes>
  [[gnu::always_inline]] constexpr void operator()(Vectors<bytes> vectors, Index n, Element* values,
                                                   Element const* gradients, std::array<Element*, 2> state) const {
    Index at = 0;
    for (; at + tile <= n; at += tile) update(vectors, tile, values + at, gradients + at, state[0] + at, state[1] + at);
    if (at < n) update(vectors, n - at, values + at, gradients + at, state[0] + at, state[1] + at);
  }
  /// Updates elements on a device, whose threads take one element each.
  constexpr void operator()(Index n, Element* values, Element const* gradients, std::array<Element*, 2> state) const {
    (*this)(Vectors<16>{}, n, values, gradients, state);
  }

 private:
  /// Block size. Roots and divisions take most of the time and share one unit of the processor, so they get their own
  /// pass. A tile is small enough for the processor to overlap the passes of two tiles. A constant count lets the
  /// compiler unroll all of it.
  static constexpr Index tile = 64;

  [[gnu::always_inline]] constexpr void update(auto vectors, Index n, Element* __restrict values,
                                               Element const* __restrict gradients, Element* __restrict m,
                                               Element* __restrict v) const {
    alignas(64) Element root[tile];
    for (Index i = 0; i < n; ++i) {
      auto g = gradients[i] * scale_;
      if constexpr (decay == Decay::coupled) g += decay_ * values[i];
      m[i] = flush_to_zero<30>(m[i] + blend1_ * (g - m[i]));  // 1e-29 in float32
      root[i] = v[i] =
          flush_positive_to_zero<16>(keep2_ * v[i] + blend2_ * g * g);  // 8e-34: its root vanishes against any epsilon
    }
    kernel::square_roots(vectors, root, n);
    for (Index i = 0; i < n; ++i) {
      auto const decayed = decay == Decay::coupled ? values[i] : decay_ * values[i];
      values[i] = decayed - rate_ * m[i] / (root[i] * root_scale_ + epsilon_);
    }
  }

  Element scale_, blend1_, keep2_, blend2_, decay_, rate_, root_scale_, epsilon_;
  bool leaves_untouched_rows_;
};

}}}  // namespace lockstep::optim::detail
