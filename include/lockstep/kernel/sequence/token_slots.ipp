// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <string>

#include <lockstep/core/contract.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/kernel/detail/token_runs.hpp>
#include <lockstep/kernel/sequence/token_slots.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {

/// @throws RowError for a place at which the sequence has no token
inline void check_places(Index row, std::int32_t const* places, Index count, Index tokens) {
  for (Index i = 0; i < count; ++i)
    if (places[i] < 0 || places[i] >= tokens)
      throw RowError("gather_tokens: row " + std::to_string(row) + " of the batch names token " +
                         std::to_string(places[i]) + " at position " + std::to_string(i) + "; its sequence has " +
                         std::to_string(tokens) + " tokens, counted from 0 in each sample: correct the sample",
                     row);
}

/// @throws RowError unless these firsts divide the sequence's tokens into groups
inline void check_firsts(Index row, std::int32_t const* firsts, Index count, Index tokens) {
  auto const reject = [&](std::string const& what) {
    throw RowError("group_tokens: row " + std::to_string(row) + " of the batch " + what +
                       ": group i of a sample has its tokens from first[i] up to first[i + 1], and every token is in "
                       "a group",
                   row);
  };
  if (count == 0 && tokens > 0) reject("has " + std::to_string(tokens) + " tokens and no group");
  for (Index i = 0; i < count; ++i) {
    auto const before = i == 0 ? std::int32_t{0} : firsts[i - 1];
    if (firsts[i] < before || firsts[i] > tokens || (i == 0 && firsts[i] != 0))
      reject("has first token " + std::to_string(firsts[i]) + " at position " + std::to_string(i) +
             (i == 0 ? ", which must be 0"
                     : ", which must be from " + std::to_string(before) + " to its " + std::to_string(tokens) +
                           " tokens"));
  }
}

}  // namespace detail

LOCKSTEP_INLINE void TokenSlots<HostSpace>::find(Stream stream, SequenceLayout<HostSpace> x,
                                                 SequenceLayout<HostSpace> names, Vector<std::int32_t const> places,
                                                 Vector<std::int32_t> slots) {
  if constexpr (checks(Contract::normal))
    for (Index row = 0; row < names.rows; ++row)
      detail::check_places(row, places.data + names.start(row), names.tokens(row), x.tokens(row));
  detail::for_token_runs(
      stream.pool(), names,
      [=](Index row, Index, Index slot, Index count) {
        auto const start = static_cast<std::int32_t>(x.start(row));
        for (auto i = slot; i < slot + count; ++i) slots.data[i] = start + places.data[i];
      },
      [=](Index slot, Index padding) { std::fill_n(slots.data + slot, padding, -1); });
}

LOCKSTEP_INLINE void TokenSlots<HostSpace>::group_offsets(Stream stream, SequenceLayout<HostSpace> x,
                                                          SequenceLayout<HostSpace> names,
                                                          Vector<std::int32_t const> firsts, Vector<Index> offsets) {
  if constexpr (checks(Contract::normal))
    for (Index row = 0; row < names.rows; ++row)
      detail::check_firsts(row, firsts.data + names.start(row), names.tokens(row), x.tokens(row));
  detail::for_token_runs(
      stream.pool(), names,
      [=](Index row, Index, Index slot, Index count) {
        for (auto i = slot; i < slot + count; ++i) offsets.data[i] = x.start(row) + firsts.data[i];
      },
      [](Index, Index) {});
  offsets.data[names.slots] = x.slots;
}

}}}  // namespace lockstep::kernel
