// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include <lockstep/core/index.hpp>
#include <lockstep/core/instruction_set.hpp>
#include <lockstep/optim/detail/flush_to_zero.hpp>
#include <lockstep/optim/untouched_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace optim::detail {

/// A rule that also updates x - a, the values' distance from their average, as the last state. All states begin at
/// zero, so a value that no step changes is its own average.
template <class Rule, class Element, std::size_t states_of_rule>
class AveragedRule {
 public:
  template <class Scalars>
  constexpr AveragedRule(Rule const& rule, Scalars const& s, double decay, bool leaves_untouched_rows)
      : rule_(rule),
        keep_(static_cast<Element>(std::min(decay, 1 - 1 / s.step))),
        leaves_untouched_rows_(leaves_untouched_rows) {}

  /// Returns the optimizer's setting, not the rule's: even if the rule changes nothing, the average still approaches
  /// the value.
  [[nodiscard]] constexpr bool leaves_untouched_rows() const noexcept { return leaves_untouched_rows_; }

  template <std::size_t bytes>
  [[gnu::always_inline]] constexpr void operator()(Vectors<bytes> vectors, Index n, Element* values,
                                                   Element const* gradients,
                                                   std::array<Element*, states_of_rule + 1> state) const {
    for (Index at = 0; at < n; at += tile)
      update(vectors, std::min(Index{tile}, n - at), at, values, gradients, state);  // tile has no address on a device
  }
  /// Updates elements on a device, whose threads take one element each.
  constexpr void operator()(Index n, Element* values, Element const* gradients,
                            std::array<Element*, states_of_rule + 1> state) const {
    (*this)(Vectors<16>{}, n, values, gradients, state);
  }

 private:
  static constexpr Index tile = 64;

  [[gnu::always_inline]] constexpr void update(auto vectors, Index n, Index at, Element* values,
                                               Element const* gradients,
                                               std::array<Element*, states_of_rule + 1> const& state) const {
    alignas(64) Element before[tile];
    for (Index i = 0; i < n; ++i) before[i] = values[at + i];
    std::array<Element*, states_of_rule> of_rule{};
    for (std::size_t s = 0; s < states_of_rule; ++s) of_rule[s] = state[s] + at;
    if constexpr (requires { rule_(vectors, n, values, gradients, of_rule); })
      rule_(vectors, n, values + at, gradients + at, of_rule);
    else
      rule_(n, values + at, gradients + at, of_rule);
    Element* const lag = state[states_of_rule] + at;
    for (Index i = 0; i < n; ++i) lag[i] = flush_to_zero<30>(keep_ * (lag[i] + (values[at + i] - before[i])));
  }

  Rule rule_;
  Element keep_;
  bool leaves_untouched_rows_;
};

/// Makes an AveragedRule in the space of the step's scalars.
template <class MakeInner, class Element, std::size_t states_of_rule>
struct MakeAveragedRule {
  MakeInner make;
  double decay;

  template <class Scalars>
  [[nodiscard]] constexpr auto operator()(Scalars const& scalars) const {
    auto const rule = make(scalars);
    bool leaves = rule.leaves_untouched_rows();
    if constexpr (requires { make.options.untouched_rows; })
      leaves = make.options.untouched_rows == UntouchedRows::skip;
    return AveragedRule<std::remove_const_t<decltype(rule)>, Element, states_of_rule>(rule, scalars, decay, leaves);
  }
};

/// Steps an optimizer without a rule on blocks of a slice, and updates x - a, the slice's last state. Does not check
/// whether the step is active.
template <class Base, class Stream, class Slice, class Scalars>
void step_averaged(Base const& base, Stream stream, Slice const& slice, Scalars const* scalars, double decay) {
  using Element = std::remove_reference_t<decltype(*slice.values)>;
  auto const keep = static_cast<Element>(std::min(decay, 1 - 1 / scalars->step));
  constexpr Index block = 2048;
  std::array<Element, static_cast<std::size_t>(block)> before;
  for (Index at = 0; at < slice.count; at += block) {
    auto part = slice;
    part.offset += at, part.values += at, part.gradients += at;
    part.count = std::min(block, slice.count - at);
    part.half_precision = slice.half_precision + at;
    std::array<Element*, static_cast<std::size_t>(Base::states)> states{};
    for (std::size_t s = 0; s < states.size(); ++s) states[s] = slice.states[s] + at;
    part.states = states.data();
    std::copy_n(part.values, part.count, before.begin());
    base.step(stream, part, scalars);
    Element* const lag = slice.states[Base::states] + at;
    for (Index i = 0; i < part.count; ++i)
      lag[i] = flush_to_zero<30>(keep * (lag[i] + (part.values[i] - before[static_cast<std::size_t>(i)])));
  }
}

}}}  // namespace lockstep::optim::detail
