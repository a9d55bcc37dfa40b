// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/error.hpp>
#include <lockstep/nn/variable.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// How the tokens of a batch of sequences lie in memory: `rows` sequences of `length` slots each, of which the first
/// lengths[r] hold tokens and the rest is padding.
template <class Space>
struct PaddedLayout {
  Index rows = 0;
  Index length = 0;
  TensorView<std::int32_t const, 1, Space> lengths;  // [rows]
  TensorView<Index const, 1, Space> positions;  // [rows], each row's place in the epoch's global order: the random key

  [[nodiscard]] Index slots() const noexcept { return rows * length; }
};

/// The activations of a batch of sequences, one vector per slot. What stands in padding slots is finite and never read
/// by a layer that mixes tokens; its gradient is zero.
template <class Scalar, class Space>
struct Sequence {
  Variable<Scalar, 2, Space> tokens;  // [rows * length, width]
  PaddedLayout<Space> layout;

  [[nodiscard]] Index width() const noexcept { return tokens.extent(1); }
  /// The same layout around another activation.
  [[nodiscard]] Sequence with(Variable<Scalar, 2, Space> other) const noexcept { return {other, layout}; }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
