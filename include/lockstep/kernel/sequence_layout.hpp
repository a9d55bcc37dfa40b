// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/space.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Where the tokens of a batch of sequences lie among the slots (rows) of an activation. Sequence r holds the slots
/// from start(r) on, of which the first tokens(r) are tokens; what follows up to the next sequence is padding. Padded:
/// each sequence has `length` slots. Ragged: sequences lie end to end and nothing is padding.
template <class Space>
struct SequenceLayout {
  Index rows = 0;
  Index slots = 0;   ///< of all sequences
  Index length = 0;  ///< most slots of a sequence
  TensorView<std::int32_t const, 1, Space>
      lengths{};                                  ///< padded: [rows], tokens of each, or empty: all slots are tokens
  TensorView<Index const, 1, Space> offsets{};    ///< ragged: [rows + 1], first slot of each; padded: empty
  TensorView<Index const, 1, Space> positions{};  ///< [rows], each sample's place in the epoch's order: the random key

  [[nodiscard]] static constexpr SequenceLayout padded(Index length, TensorView<std::int32_t const, 1, Space> lengths,
                                                       TensorView<Index const, 1, Space> positions) noexcept {
    return {positions.extent[0], positions.extent[0] * length, length, lengths, {}, positions};
  }
  /// Vectors instead of sequences: each slot is a sequence of one token. Positions are the keys of dropout.
  [[nodiscard]] static constexpr SequenceLayout vectors(Index rows,
                                                        TensorView<Index const, 1, Space> positions = {}) noexcept {
    return {rows, rows, 1, {}, {}, positions};
  }
  /// `slots` is the last offset and `longest` the longest sequence: both live on the host, whatever the space.
  [[nodiscard]] static constexpr SequenceLayout ragged(Index slots, Index longest,
                                                       TensorView<Index const, 1, Space> offsets,
                                                       TensorView<Index const, 1, Space> positions) noexcept {
    return {positions.extent[0], slots, longest, {}, offsets, positions};
  }

  [[nodiscard]] constexpr bool is_ragged() const noexcept { return offsets.data != nullptr; }
  [[nodiscard]] constexpr Index start(Index row) const noexcept {
    return is_ragged() ? offsets.data[row] : row * length;
  }
  [[nodiscard]] constexpr Index end(Index row) const noexcept { return start(row + 1); }
  [[nodiscard]] constexpr Index tokens(Index row) const noexcept {
    if (is_ragged()) return offsets.data[row + 1] - offsets.data[row];
    return lengths.empty() ? length : static_cast<Index>(lengths.data[row]);
  }
  /// False in padding.
  [[nodiscard]] constexpr bool is_token(Index slot) const noexcept {
    return is_ragged() || lengths.empty() || slot % length < static_cast<Index>(lengths.data[slot / length]);
  }
  /// The sequence that a slot belongs to: a division, or a binary search over the offsets.
  [[nodiscard]] constexpr Index row_of(Index slot) const noexcept {
    if (!is_ragged()) return slot / length;
    Index first = 0, count = rows;  // the last row that starts at or before the slot
    while (count > 1) {
      Index const half = count / 2;
      if (offsets.data[first + half] <= slot) first += half;
      count -= half;
    }
    return first;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
