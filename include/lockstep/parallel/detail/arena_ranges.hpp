// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include <lockstep/kernel/sum_of_squares.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/nn/parameter_layout.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Elements [begin, end) of an arena.
struct ArenaPart {
  Index begin = 0, end = 0;
};

/// The same, which ranks sum, or hand round, as one.
struct ArenaRange {
  Index begin = 0, end = 0;
  bool dealt = false;     ///< rank r of n is to have the r-th n-th of it; else every rank has all
  bool of_table = false;  ///< of a table whose gradient goes by rows, which RowExchange sums

  /// What a rank has of it.
  [[nodiscard]] constexpr ArenaPart part(int rank, int ranks) const noexcept {
    if (!dealt) return {begin, end};
    auto const each = (end - begin) / ranks;
    return {begin + rank * each, begin + (rank + 1) * each};
  }
};

/// Elements of the next bucket when `rest` are left, with buckets of `full`: the first has a quarter of the size, so
/// that it leaves early; at the end they shrink to a quarter, as nothing hides the last one. All of whole units.
[[nodiscard]] inline Index next_length(Index full, Index rest, bool first,
                                       Index unit = nn::ParameterLayout::alignment) noexcept {
  auto const whole = [=](Index count) { return count / unit * unit; };
  auto const least = std::max(whole(full / 4), unit);
  if (first) return std::min(rest, least);
  return rest < least + least / 2 ? rest : std::clamp(whole(rest / 2), least, full);
}

/// Cuts an arena of `size` elements into buckets of about so many, between tables, and calls f(range) for each of
/// them, in order. There is always a bucket, and the first one is not dealt: numbers ride with its sum.
///
/// For several `ranks` buckets and tables are dealt, but for what is left over: parts are whole blocks of SumOfSquares,
/// so that ranks can share the work of the norm. That leaves less than `ranks` blocks, and the block's rest at either
/// end, of the arena and of what lies between two tables.
template <class F>
void cut_arena(Index size, Index bucket, std::span<kernel::TouchedRows const> tables, int ranks, F const& f) {
  constexpr auto block = kernel::SumOfSquares<HostSpace>::block;
  auto const unit = ranks > 1 ? ranks * block : nn::ParameterLayout::alignment;
  auto const full = std::max(unit, ranks > 1 ? bucket / unit * unit : bucket);
  bool has_bucket = false, has_full_bucket = false;
  auto const whole = [&](Index begin, Index end, bool of_table) {
    if (begin == end && (of_table || has_bucket)) return;
    f(ArenaRange{begin, end, false, of_table});
    has_bucket = has_bucket || !of_table;
  };
  auto const cut = [&](Index begin, Index end, bool of_table) {
    for (Index next; begin < end; begin = next) {
      auto const rest = size - begin;
      next = std::min(end, begin + (of_table ? full : next_length(full, rest, !has_full_bucket, unit)));
      f(ArenaRange{begin, next, ranks > 1, of_table});
      if (!of_table) has_bucket = has_full_bucket = true;
    }
  };
  auto const deal = [&](Index begin, Index end, bool of_table) {
    if (begin == end) return;
    if (ranks == 1) return of_table ? whole(begin, end, true) : cut(begin, end, false);
    auto const last = end / block * block, first = (begin + block - 1) / block * block;
    auto const middle = last - std::max<Index>(0, last - first) / unit * unit;
    if (middle >= last) return whole(begin, end, of_table);
    whole(begin, middle, of_table);
    cut(middle, last, of_table);
    whole(last, end, of_table);
  };
  Index begin = 0;
  for (auto const& table : tables) {
    auto const end = table.offset + nn::ParameterLayout::padded(table.rows * table.width);
    deal(begin, table.offset, false);
    deal(table.offset, end, true);
    begin = end;
  }
  deal(begin, size, false);
  if (!has_bucket) whole(0, 0, false);
}

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
