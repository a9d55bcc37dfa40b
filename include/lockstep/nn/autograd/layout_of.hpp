// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <concepts>
#include <cstdint>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// A column of sequences padded to one length, as data::PadCollate makes from a std::vector.
template <class Column, class Space>
concept PaddedSequences = requires(Column const& column) {
  { column.values.extent[1] } -> std::convertible_to<Index>;                            // [rows, length, ...]
  { column.lengths } -> std::convertible_to<TensorView<std::int32_t const, 1, Space>>;  // [rows]
};

/// A column of concatenated sequences, as data::RaggedCollate makes from a std::vector.
template <class Column, class Space>
concept RaggedSequences = requires(Column const& column) {
  { column.values.extent[0] } -> std::convertible_to<Index>;                     // [offsets[rows], ...]
  { column.offsets } -> std::convertible_to<TensorView<Index const, 1, Space>>;  // [rows + 1]
  { column.longest } -> std::convertible_to<Index>;
};

/// A column of one number for each sample, as any collate makes from a number: sequences of one token. Excludes columns
/// of optionals, because an absent value may read as a valid id.
template <class Column>
concept SingleElements = requires(Column const& column) {
  { column.values.extent } -> std::same_as<Extents<1> const&>;  // [rows]
  requires !requires { column.offsets; };
  requires !requires { column.present; };
};

/// A column of equally many numbers for each sample, as any collate makes from a std::array: sequences of one length.
template <class Column>
concept FixedSequences = requires(Column const& column) {
  { column.values.extent } -> std::same_as<Extents<2> const&>;  // [rows, length]
  requires !requires { column.lengths; };
  requires !requires { column.offsets; };
};

/// Requires a column of a batch that has a layout of sequences: padded, ragged, or one element per sample.
template <class Column, class Space>
concept SequenceColumn = PaddedSequences<Column, Space> || RaggedSequences<Column, Space> || SingleElements<Column>;

/// Requires a column of std::int32_t, std::array<std::int32_t, N> or std::vector<std::int32_t>: ids of a table's rows,
/// or places in a sequence.
template <class Column, class Space>
concept IdColumn = (SequenceColumn<Column, Space> || FixedSequences<Column>)&&requires(Column const& column) {
  { column.values.data } -> std::convertible_to<std::int32_t const*>;
};

/// Returns the layout of a column's sequences.
/// @shape positions [rows], each sample's position in the epoch: dropout's key
/// @throws ShapeError if the column's parts disagree in rows, or padding precedes the tokens of its sequences
template <class Space, class Column>
requires SequenceColumn<Column, Space> || FixedSequences<Column>
[[nodiscard]] SequenceLayout<Space> layout_of(Column const& column, TensorView<Index const, 1, Space> positions) {
  if constexpr (RaggedSequences<Column, Space>) {
    expect<ShapeError>(column.offsets.extent[0] == positions.size() + 1, [&] {
      return "sequences: " + std::to_string(column.offsets.extent[0]) + " offsets and " +
             std::to_string(positions.size()) + " positions; there is one offset more than rows";
    });
    return SequenceLayout<Space>::ragged(column.values.extent[0], column.longest, column.offsets, positions);
  } else if constexpr (SingleElements<Column>) {
    expect<ShapeError>(column.values.size() == positions.size(), [&] {
      return "sequences: " + std::to_string(column.values.size()) + " rows of one element and " +
             std::to_string(positions.size()) + " positions; each row needs one";
    });
    return SequenceLayout<Space>::vectors(positions.size(), positions);
  } else if constexpr (FixedSequences<Column>) {
    expect<ShapeError>(column.values.extent[0] == positions.size(), [&] {
      return "sequences: " + std::to_string(column.values.extent[0]) + " rows of one length and " +
             std::to_string(positions.size()) + " positions; each row needs one";
    });
    return SequenceLayout<Space>::padded(column.values.extent[1], {}, positions);
  } else {
    auto const rows = column.values.extent[0];
    expect<ShapeError>(column.lengths.extent[0] == rows && positions.size() == rows, [&] {
      return "sequences: " + std::to_string(rows) + " rows, " + std::to_string(column.lengths.extent[0]) +
             " lengths and " + std::to_string(positions.size()) + " positions; each row needs one of each";
    });
    if constexpr (requires { column.side; })
      expect<ShapeError>(column.side == decltype(column.side){}, [] {
        return "sequences: their padding is at the start; layers need padding at the end: leave PadCollate's `side` as "
               "it is";
      });
    return SequenceLayout<Space>::padded(column.values.extent[1], column.lengths, positions);
  }
}

}}}  // namespace lockstep::nn
