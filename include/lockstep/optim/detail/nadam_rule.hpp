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

/// NAdam's factor u(t) of momentum.
[[nodiscard]] constexpr double nadam_momentum(double beta1, double momentum_decay, double t) {
  return beta1 * (1 - std::pow(0.96, t * momentum_decay) / 2);
}
/// Returns u(1) u(2) ... u(t). A function of the step, so that a run resumes without it. At most some thousand factors
/// are computed: after these, either the product vanishes against 1, or all further factors are beta1.
[[nodiscard]] constexpr double nadam_product(double beta1, double momentum_decay, double t) {
  double const shrink = std::pow(0.96, momentum_decay);
  double product = 1, power = 1, i = 0;
  while (i < t && product > 1e-20 && power > 1e-20) {
    power *= shrink;
    product *= beta1 * (1 - power / 2);
    ++i;
  }
  return product > 1e-20 ? product * std::pow(beta1, t - i) : 0;
}

/// NAdam's update of a block, with constants computed once per step.
template <class Element>
class NAdamRule {
 public:
  template <class Options, class Scalars>
  constexpr NAdamRule(Options const& o, Scalars const& s, double weight_decay)
      : scale_(static_cast<Element>(s.gradient_scale())),
        blend1_(static_cast<Element>(1 - o.beta1)),
        keep2_(static_cast<Element>(o.beta2)),
        blend2_(static_cast<Element>(1 - o.beta2)),
        root_scale_(static_cast<Element>(1 / std::sqrt(1 - std::pow(o.beta2, s.step)))),
        epsilon_(static_cast<Element>(o.epsilon)),
        leaves_untouched_rows_(o.untouched_rows == UntouchedRows::skip) {
    double const now = nadam_momentum(o.beta1, o.momentum_decay, s.step),
                 next = nadam_momentum(o.beta1, o.momentum_decay, s.step + 1),
                 product = nadam_product(o.beta1, o.momentum_decay, s.step);
    gradient_rate_ = static_cast<Element>(s.learning_rate * (1 - now) / (1 - product));
    moment_rate_ = static_cast<Element>(s.learning_rate * next / (1 - product * next));
    bool const coupled = o.kind == Options::WeightDecay::coupled;
    penalty_ = static_cast<Element>(coupled ? weight_decay : 0);
    keep_ = static_cast<Element>(coupled ? 1 : 1 - s.learning_rate * weight_decay);
  }

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
                                               Element const* __restrict gradients, Element* __restrict m,
                                               Element* __restrict v) const {
    alignas(64) Element root[tile], step[tile];
    for (Index i = 0; i < n; ++i) {
      auto const g = gradients[i] * scale_ + penalty_ * values[i];
      m[i] = flush_to_zero<30>(m[i] + blend1_ * (g - m[i]));  // 1e-29 in float32
      root[i] = v[i] =
          flush_positive_to_zero<16>(keep2_ * v[i] + blend2_ * g * g);  // 8e-34: its root vanishes against any epsilon
      step[i] = gradient_rate_ * g + moment_rate_ * m[i];
    }
    kernel::square_roots(vectors, root, n);
    for (Index i = 0; i < n; ++i) values[i] = keep_ * values[i] - step[i] / (root[i] * root_scale_ + epsilon_);
  }

  Element scale_, blend1_, keep2_, blend2_, root_scale_, epsilon_, gradient_rate_{}, moment_rate_{}, penalty_{},
      keep_{};
  bool leaves_untouched_rows_;
};

}}}  // namespace lockstep::optim::detail
