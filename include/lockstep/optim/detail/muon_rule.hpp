// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>

#include <lockstep/core/index.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// Updates Muon's momentum of a block, and writes the direction that the step orthogonalizes.
template <class Element>
class MuonDirectionRule {
 public:
  template <class Options, class Scalars>
  constexpr MuonDirectionRule(Options const& o, Scalars const& s, double)
      : scale_(static_cast<Element>(s.gradient_scale())),
        blend_(static_cast<Element>(1 - o.momentum)),
        ahead_(static_cast<Element>(o.kind == Options::Momentum::nesterov ? 1 - o.momentum : 0)) {}

  [[nodiscard]] static constexpr bool leaves_untouched_rows() noexcept { return false; }

  [[gnu::always_inline]] constexpr void operator()(Index n, Element* __restrict direction,
                                                   Element const* __restrict gradients,
                                                   std::array<Element*, 1> state) const {
    Element* const __restrict m = state[0];
    for (Index i = 0; i < n; ++i) {
      auto const g = gradients[i] * scale_;
      m[i] = flush_to_zero<30>(m[i] + blend_ * (g - m[i]));  // 1e-29 in float32
      direction[i] = m[i] + ahead_ * (g - m[i]);
    }
  }

 private:
  Element scale_, blend_, ahead_;
};

/// Muon's update of a block by the orthogonalized direction, in place of gradients.
template <class Element>
class MuonRule {
 public:
  /// @param adjustment factor on the rate for the matrix's shape
  template <class Scalars>
  constexpr MuonRule(double adjustment, Scalars const& s, double weight_decay)
      : keep_(static_cast<Element>(1 - s.learning_rate * weight_decay)),
        rate_(static_cast<Element>(s.learning_rate * adjustment)) {}

  [[nodiscard]] static constexpr bool leaves_untouched_rows() noexcept { return false; }

  [[gnu::always_inline]] constexpr void operator()(Index n, Element* __restrict values,
                                                   Element const* __restrict orthogonal,
                                                   std::array<Element*, 0>) const {
    for (Index i = 0; i < n; ++i) values[i] = keep_ * values[i] - rate_ * orthogonal[i];
  }

 private:
  Element keep_, rate_;
};

}}}  // namespace lockstep::optim::detail
