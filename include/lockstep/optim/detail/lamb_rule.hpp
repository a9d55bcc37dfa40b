// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cmath>
#include <cstddef>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/kernel/elementwise/square_roots.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// LAMB's update of a block, with constants computed once per step.
template <class Element>
class LambRule {
 public:
  template <class Options, class Scalars>
  constexpr LambRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        blend1_(static_cast<Element>(1 - o.beta1)),
        keep2_(static_cast<Element>(o.beta2)),
        blend2_(static_cast<Element>(1 - o.beta2)),
        moment_scale_(static_cast<Element>(1 / (1 - std::pow(o.beta1, s.step)))),
        root_scale_(static_cast<Element>(1 / std::sqrt(1 - std::pow(o.beta2, s.step)))),
        epsilon_(static_cast<Element>(o.epsilon)),
        decay_(static_cast<Element>(weight_decay)),
        rate_(s.learning_rate) {}

  /// Returns the learning rate of the step.
  [[nodiscard]] constexpr double rate() const noexcept { return rate_; }

  /// Updates m and v.
  [[gnu::always_inline]] constexpr void moments(Index n, Element const* __restrict, Element const* __restrict gradients,
                                                std::array<Element*, 2> state) const {
    Element* const __restrict m = state[0], * const __restrict v = state[1];
    for (Index i = 0; i < n; ++i) {
      auto const g = gradients[i] * scale_;
      m[i] = flush_to_zero<30>(m[i] + blend1_ * (g - m[i]));  // 1e-29 in float32
      v[i] =
          flush_positive_to_zero<16>(keep2_ * v[i] + blend2_ * g * g);  // 8e-34: its root vanishes against any epsilon
    }
  }
  /// Computes the update, of which the ratio of norms determines the length.
  template <std::size_t bytes>
  [[gnu::always_inline]] constexpr void update(Vectors<bytes> vectors, Index n, Element const* __restrict values,
                                               std::array<Element*, 2> state, Element* __restrict out) const {
    for (Index i = 0; i < n; ++i) out[i] = state[1][i];
    kernel::square_roots(vectors, out, n);
    for (Index i = 0; i < n; ++i)
      out[i] = state[0][i] * moment_scale_ / (out[i] * root_scale_ + epsilon_) + decay_ * values[i];
  }
  /// Computes it on a device, whose threads take one element each.
  constexpr void update(Index n, Element const* values, std::array<Element*, 2> state, Element* out) const {
    update(Vectors<16>{}, n, values, state, out);
  }

 private:
  Element scale_, blend1_, keep2_, blend2_, moment_scale_, root_scale_, epsilon_, decay_;
  double rate_;
};

}}}  // namespace lockstep::optim::detail
