// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Positions of a batch's tokens among the slots (rows) of an activation. Sequence r has the slots from start(r) up to
/// the next sequence. The first tokens(r) slots are tokens, and the rest is padding. Padded: each sequence has `length`
/// slots. Ragged: sequences are contiguous, without padding.
template <class Space>
struct SequenceLayout {
  Index rows = 0;    ///< number of sequences
  Index slots = 0;   ///< of all sequences
  Index length = 0;  ///< most slots of a sequence
  TensorView<std::int32_t const, 1, Space>
      lengths{};                                  ///< padded: [rows], tokens of each, or empty: all slots are tokens
  TensorView<Index const, 1, Space> offsets{};    ///< ragged: [rows + 1], first slot of each; padded: empty
  TensorView<Index const, 1, Space> positions{};  ///< [rows], each sample's position in the epoch: a random key

  /// Returns a padded layout; empty `lengths`: all slots are tokens.
  /// @shape lengths [rows] or empty   @shape positions [rows]
  [[nodiscard]] static constexpr SequenceLayout padded(Index length, TensorView<std::int32_t const, 1, Space> lengths,
                                                       TensorView<Index const, 1, Space> positions) noexcept {
    return {positions.extent[0], positions.extent[0] * length, length, lengths, {}, positions};
  }
  /// Returns a layout for vectors instead of sequences: each slot is a sequence of one token. `positions` are the keys
  /// of dropout.
  [[nodiscard]] static constexpr SequenceLayout vectors(Index rows,
                                                        TensorView<Index const, 1, Space> positions = {}) noexcept {
    return {rows, rows, 1, {}, {}, positions};
  }
  /// Returns a ragged layout. `slots` is the last offset and `longest` the longest sequence; both are values on the
  /// host for any space.
  [[nodiscard]] static constexpr SequenceLayout ragged(Index slots, Index longest,
                                                       TensorView<Index const, 1, Space> offsets,
                                                       TensorView<Index const, 1, Space> positions) noexcept {
    return {positions.extent[0], slots, longest, {}, offsets, positions};
  }

  /// Returns whether sequences are contiguous, without padding.
  [[nodiscard]] constexpr bool is_ragged() const noexcept { return offsets.data != nullptr; }
  /// Returns the first slot of a sequence.
  [[nodiscard]] constexpr Index start(Index row) const noexcept {
    return is_ragged() ? offsets.data[row] : row * length;
  }
  /// Returns the slot after the last of a sequence, padding included.
  [[nodiscard]] constexpr Index end(Index row) const noexcept { return start(row + 1); }
  /// Returns the number of tokens of a sequence, without padding.
  [[nodiscard]] constexpr Index tokens(Index row) const noexcept {
    if (is_ragged()) return offsets.data[row + 1] - offsets.data[row];
    return lengths.empty() ? length : static_cast<Index>(lengths.data[row]);
  }
  /// Returns false for padding.
  [[nodiscard]] constexpr bool is_token(Index slot) const noexcept {
    return is_ragged() || lengths.empty() || slot % length < static_cast<Index>(lengths.data[slot / length]);
  }
  /// Returns the sequence of a slot: a division, or a binary search over the offsets.
  [[nodiscard]] constexpr Index row_of(Index slot) const noexcept {
    if (!is_ragged()) return slot / length;
    Index first = 0, count = rows;  // finds the last row that starts at or before the slot
    while (count > 1) {
      Index const half = count / 2;
      if (offsets.data[first + half] <= slot) first += half;
      count -= half;
    }
    return first;
  }
};

}}}  // namespace lockstep::kernel
