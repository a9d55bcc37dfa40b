// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <type_traits>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/sequence/token_slots.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>
#include <lockstep/nn/detail/argument_checks.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// Returns x divided into one sequence per group of consecutive tokens, without copying: group i of a sample has its
/// tokens from firsts[i] up to firsts[i + 1], and the last group ends with the sample. mean_pool, sum_pool or max_pool
/// then give one row per group, such as the messages that each node of a graph receives. Groups may be empty.
///
/// The result has no positions, so it cannot be dropped out: apply nn::Dropout to x.
/// @param firsts column of std::vector<std::int32_t> of data::RaggedCollate: for each group its first token, counted
/// from 0 in the sample, as the row pointers of a sparse matrix without the last
/// @shape returns [groups of all samples] sequences with the tokens of x
/// @throws ShapeError if x or the column is padded, or they have different numbers of rows
/// @throws RowError (at Contract::normal, on the host) unless a sample's firsts begin with 0, never decrease, and are
/// at most its number of tokens; not checked on a device
template <class Context, IdColumn<typename Context::Space> Column>
requires RaggedSequences<Column, typename Context::Space>
[[nodiscard]] SequenceOf<Context> group_tokens(Context& context, SequenceOf<Context> const& x, Column const& firsts) {
  using Space = typename Context::Space;
  context.cache().expect_whole_sequences("group_tokens");
  expect<ShapeError>(x.layout.is_ragged(), [] {
    return "group_tokens: x is padded, and groups are consecutive tokens without padding: batch the samples with "
           "data::RaggedCollate";
  });
  auto const names = layout_of<Space>(firsts, x.layout.positions);
  auto const offsets = context.template temporary<Index>(Extents<1>{names.slots + 1});
  kernel::TokenSlots<Space>::group_offsets(context.stream(), x.layout, names, {firsts.values.data, {names.slots}},
                                           offsets);
  return {x.tokens,
          {.rows = names.slots,
           .slots = x.layout.slots,
           .length = x.layout.length,
           .offsets = {offsets.data, offsets.extent}}};
}

/// Rejects other columns at compile time.
template <class Context, class Column>
requires(!(IdColumn<Column, typename Context::Space> && RaggedSequences<Column, typename Context::Space>))
    [[nodiscard]] SequenceOf<Context> group_tokens(Context&, SequenceOf<Context> const& x, Column const&) {
  static_assert(!std::is_same_v<Column, Column>,
                "Lockstep: nn::group_tokens takes the first token of each group, a column of std::vector<std::int32_t> "
                "of data::RaggedCollate");
  return x;
}
/// Rejects an input that is no Sequence at compile time.
template <class Context, detail::NotSequence<Context> Input, class Column>
[[nodiscard]] SequenceOf<Context> group_tokens(Context&, Input const& x, Column const&) {
  return detail::reject_non_sequence<Context>(x);
}

}}}  // namespace lockstep::nn
