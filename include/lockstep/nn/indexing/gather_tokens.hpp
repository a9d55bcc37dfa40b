// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/sequence/token_slots.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>
#include <lockstep/nn/indexing/detail/rows_by_slot.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns the tokens of x at these places, in this order: token i of a sample's result is token places[i] of its
/// sequence in x. For edges of a graph, the first subword of each word, or the cells of an image that have an object.
/// Backward adds up the gradients of equal places.
/// @param places column of std::int32_t, std::array<std::int32_t, N> or std::vector<std::int32_t>. Places count the
/// tokens of the sample from 0
/// @shape x.tokens [slots, width]   @shape returns tokens [slots of the column, width], in the column's layout
/// @determinism bitwise, for any number of threads: sums of 32 equal places in their order, then the sums in order
/// @throws RowError (at Contract::normal, on the host) for a place without a token; on a device its token is NaN
/// @throws ShapeError if the column has another number of rows than x, or x has 2^31 slots or more
template <class Context, IdColumn<typename Context::Space> Column>
[[nodiscard]] SequenceOf<Context> gather_tokens(Context& context, SequenceOf<Context> const& x, Column const& places) {
  using Space = typename Context::Space;
  context.cache().expect_whole_sequences("gather_tokens");
  expect<ShapeError>(x.layout.slots <= std::numeric_limits<std::int32_t>::max(), [&] {
    return "gather_tokens: x has " + std::to_string(x.layout.slots) + " slots; places of 32 bits reach fewer than 2^31";
  });
  auto const layout = layout_of<Space>(places, x.layout.positions);
  auto const slots = context.template temporary<std::int32_t>(Extents<1>{layout.slots});
  kernel::TokenSlots<Space>::find(context.stream(), x.layout, layout, {places.values.data, {layout.slots}}, slots);
  return {detail::rows_by_slot(context, x.tokens, layout, {slots.data, slots.extent}), layout};
}

/// Rejects other columns at compile time.
template <class Context, class Column>
requires(!IdColumn<Column, typename Context::Space>)
    [[nodiscard]] SequenceOf<Context> gather_tokens(Context&, SequenceOf<Context> const& x, Column const&) {
  static_assert(!std::is_same_v<Column, Column>,
                "Lockstep: nn::gather_tokens takes places within each sample's sequence, a column of std::int32_t, "
                "std::array<std::int32_t, N> or std::vector<std::int32_t>; nn::gather_rows takes a tensor of indices");
  return x;
}
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input, class Column>
[[nodiscard]] SequenceOf<Context> gather_tokens(Context&, Input const& x, Column const&) {
  return detail::reject_non_sequence<Context>(x);
}

}}}  // namespace lockstep::nn
