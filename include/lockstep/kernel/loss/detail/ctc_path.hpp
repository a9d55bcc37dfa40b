// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/index.hpp>
#include <lockstep/kernel/detail/exp.hpp>
#include <lockstep/kernel/detail/log.hpp>
#include <lockstep/kernel/sequence_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

/// States of an alignment to labels: a blank, a label, a blank, and so on. A step stays, advances to the next state, or
/// skips a blank between labels that differ. For the host and devices.
template <class Label>
struct CtcPath {
  Label const* labels;
  Index count, blank;

  [[nodiscard]] constexpr Index states() const noexcept { return 2 * count + 1; }
  [[nodiscard]] constexpr Index label(Index state) const noexcept {
    return state % 2 == 0 ? blank : static_cast<Index>(labels[state / 2]);
  }
  /// Returns whether a state can also follow the state two before it.
  [[nodiscard]] constexpr bool skips(Index state) const noexcept {
    return state % 2 == 1 && state > 1 && labels[state / 2] != labels[state / 2 - 1];
  }
  /// Returns the smallest number of tokens for these labels.
  [[nodiscard]] constexpr Index min_tokens() const noexcept {
    auto min_tokens = count;
    for (Index i = 1; i < count; ++i) min_tokens += labels[i] == labels[i - 1] ? 1 : 0;
    return min_tokens;
  }
};

/// Logarithm of a probability of zero, which can be added to others: possible alignments are far above it.
template <class Scalar>
inline constexpr Scalar ctc_log_zero = Scalar(-1e30);

/// Returns log(e^a + e^b + e^c).
template <class Scalar>
[[nodiscard, gnu::always_inline]] constexpr Scalar log_sum(Scalar a, Scalar b, Scalar c) noexcept {
  Scalar const ab = a > b ? a : b, maximum = ab > c ? ab : c;
  return maximum + log(exp(a - maximum) + exp(b - maximum) + exp(c - maximum));
}

/// Layout of the kernel's memory.
template <class Scalar>
struct CtcMemory {
  Scalar* token_states;  ///< [slots, states]: the forward pass's logarithms, shifted so that each token's largest is 0
  Scalar* normalizers;   ///< [slots]: log sum of e^logits
  Scalar* row_memory;    ///< [rows, row_elements]

  [[nodiscard]] static constexpr Index states(Index longest_labels) noexcept { return 2 * longest_labels + 1; }
  /// Returns the elements of a row: three for each state, and one for each class.
  [[nodiscard]] static constexpr Index row_elements(Index longest_labels, Index classes) noexcept {
    return 3 * states(longest_labels) + classes;
  }
  [[nodiscard]] static constexpr Index elements(Index slots, Index rows, Index longest_labels, Index classes) noexcept {
    return slots * (states(longest_labels) + 1) + rows * row_elements(longest_labels, classes);
  }
  [[nodiscard]] static constexpr CtcMemory of(Scalar* memory, Index slots, Index longest_labels) noexcept {
    auto* const normalizers = memory + slots * states(longest_labels);
    return {memory, normalizers, normalizers + slots};
  }
};

}}}  // namespace lockstep::kernel::detail
