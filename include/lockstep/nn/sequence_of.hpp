// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <type_traits>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/nn/layout_of.hpp>
#include <lockstep/nn/sequence.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// The numbers of a batch's sequences as a Sequence, ready for a Linear: one number per step from std::vector<float>, N
/// from std::vector<std::array<float, N>>; padded or ragged as the collate made them. No gradient flows into it.
/// @shape returns tokens [layout.slots, N]
/// @throws ShapeError when the column's parts disagree in rows
template <class Context, SequenceColumn<typename Context::Space> Column>
[[nodiscard]] Sequence<typename Context::Scalar, typename Context::Space> sequence_of(
    Context& context, Column const& column, TensorView<Index const, 1, typename Context::Space> positions) {
  auto const layout = layout_of<typename Context::Space>(column, positions);
  constexpr int leading = RaggedSequences<Column, typename Context::Space> ? 1 : 2;
  auto const& extent = column.values.extent;
  Index width = 1;
  if constexpr (std::tuple_size_v < std::remove_cvref_t < decltype(extent) >>> leading) width = extent[leading];
  return {context.input(column.values.reshape(Extents<2>{layout.slots, width})), layout};
}

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
