// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/autograd/variable.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns a column's numbers as a Sequence, ready for a Linear: one number per step from std::vector<float>, N from
/// std::vector<std::array<float, N>>. The collate decides whether it is padded or ragged. No gradient flows into it.
/// @shape returns tokens [layout.slots, N]
/// @throws ShapeError if the column's parts disagree in rows
template <class Context, SequenceColumn<typename Context::Space> Column>
[[nodiscard]] SequenceOf<Context> sequence_of(Context& context, Column const& column,
                                              TensorView<Index const, 1, typename Context::Space> positions) {
  auto const layout = layout_of<typename Context::Space>(column, positions);
  constexpr int leading = RaggedSequences<Column, typename Context::Space> ? 1 : 2;
  auto const& extent = column.values.extent;
  Index width = 1;
  constexpr auto axes = std::tuple_size_v<std::remove_cvref_t<decltype(extent)>>;
  if constexpr (axes > leading) width = extent[leading];
  return {context.input(column.values.reshape(Extents<2>{layout.slots, width})), layout};
}

/// Rejects other columns at compile time.
template <class Context, class Column>
requires(!SequenceColumn<Column, typename Context::Space>)
    [[nodiscard]] SequenceOf<Context> sequence_of(Context&, Column const&,
                                                  TensorView<Index const, 1, typename Context::Space>) {
  static_assert(sizeof(Column) == 0,
                "Lockstep: nn::sequence_of takes a column of std::vector, whole, and this is one of std::array or "
                "std::optional, or a tensor: make the sample's member a std::vector, or give a layer "
                "context.input(column.values)");
  return {};
}
/// Rejects calls without positions at compile time.
template <class Context, class Column>
requires requires(Column const& column) { column.values; }
[[nodiscard]] SequenceOf<Context> sequence_of(Context&, Column const&) {
  static_assert(sizeof(Column) == 0,
                "Lockstep: nn::sequence_of takes the positions of the batch's samples, which key dropout: "
                "nn::sequence_of(context, column, batch.positions())");
  return {};
}

/// Returns the numbers of a batch's sequences as a Sequence, for steps whose width is known only at run time. A
/// std::vector<float> of a sample holds steps x width numbers. `layout` is the layout of a column with one element per
/// step: `layout_of<Space>(column, positions)`. Both columns are padded, or both are ragged. No gradient flows into it.
/// @shape returns tokens [layout.slots, width]
/// @throws ShapeError unless the number of elements is layout.slots * width
template <class Context, SequenceColumn<typename Context::Space> Column>
[[nodiscard]] SequenceOf<Context> sequence_of(Context& context, Column const& column,
                                              SequenceLayout<typename Context::Space> const& layout, Index width) {
  expect<ShapeError>(column.values.size() == layout.slots * width, [&] {
    return "nn::sequence_of: the column has " + std::to_string(column.values.size()) + " numbers, and " +
           std::to_string(layout.slots) + " steps of " + std::to_string(width) + " need " +
           std::to_string(layout.slots * width) + "; give each step as many";
  });
  return {context.input(column.values.reshape(Extents<2>{layout.slots, width})), layout};
}

/// Returns the pixels, voxels or time steps of x as the tokens of equally long sequences, in row-major order. Use it
/// for a vision transformer's patches from a convolution. Gradients flow through it.
/// @shape x [rows, …, channels]   @shape positions [rows]   @shape returns tokens [rows * pixels, channels]
/// @throws ShapeError if the number of positions is not the number of rows
template <class Scalar, int Rank, class Space>
requires(Rank > 2) [[nodiscard]] Sequence<Scalar, Space> sequence_of(Variable<Scalar, Rank, Space> const& x,
                                                                     TensorView<Index const, 1, Space> positions) {
  expect<ShapeError>(positions.extent[0] == x.extent(0), [&] {
    return "nn::sequence_of: x has " + std::to_string(x.extent(0)) + " rows and there are " +
           std::to_string(positions.extent[0]) + " positions; give it batch.positions()";
  });
  Index pixels = 1;
  for (int axis = 1; axis < Rank - 1; ++axis) pixels *= x.extent(axis);
  return {x.as_rows(), SequenceLayout<Space>::padded(pixels, {}, positions)};
}

}}}  // namespace lockstep::nn
