// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <span>

#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/kernel/reduction/sum_of_squares.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Elements [begin, end) of an arena.
struct ArenaPart {
  Index begin = 0, end = 0;
};

/// A range that ranks sum or all-gather in one operation.
struct ArenaRange {
  Index begin = 0, end = 0;
  bool sharded = false;   ///< split: rank r of n gets the r-th of n equal parts; else every rank gets all
  bool of_table = false;  ///< rows of a table with gradients by rows, which RowExchange sums

  /// Returns a rank's part of the range.
  [[nodiscard]] constexpr ArenaPart part(int rank, int ranks) const noexcept {
    if (!sharded) return {begin, end};
    auto const each = (end - begin) / ranks;
    return {begin + rank * each, begin + (rank + 1) * each};
  }
};

/// Returns the number of elements of the next bucket, for buckets of `full` elements and `rest` remaining ones. The
/// first bucket has a quarter of the size, so that it starts early. At the end buckets shrink to a quarter, since no
/// computation hides the last one. Lengths are multiples of `unit`.
[[nodiscard]] inline Index next_length(Index full, Index rest, bool first,
                                       Index unit = nn::ParameterLayout::alignment) noexcept {
  auto const round_down = [=](Index count) { return count / unit * unit; };
  auto const minimum = std::max(round_down(full / 4), unit);
  if (first) return std::min(rest, minimum);
  return rest < minimum + minimum / 2 ? rest : std::clamp(round_down(rest / 2), minimum, full);
}

/// Splits an arena of `size` elements into buckets of about `bucket` elements, between tables, and calls f(range) for
/// each, in order. There is always a bucket, and the first one is not split, since its sum carries piggybacked doubles.
///
/// For several `ranks`, buckets and tables are split between them, except for remainders. Parts are whole blocks, whose
/// squares are summed separately, so that ranks can share the computation of the norm. The remainders are fewer than
/// `ranks` blocks, and partial blocks at both ends of the arena and of the ranges between tables.
template <class Function>
void split_arena(Index size, Index bucket, std::span<kernel::TouchedRows const> tables, int ranks, Function const& f,
                 Index block = kernel::SumOfSquares<HostSpace>::block) {
  auto const unit = ranks > 1 ? ranks * block : nn::ParameterLayout::alignment;
  auto const full = std::max(unit, bucket / unit * unit);
  bool has_bucket = false, has_full_bucket = false;
  auto const add_unsplit = [&](Index begin, Index end, bool of_table) {
    if (begin == end && (of_table || has_bucket)) return;
    f(ArenaRange{begin, end, false, of_table});
    has_bucket = has_bucket || !of_table;
  };
  auto const split = [&](Index begin, Index end, bool of_table) {
    for (Index next; begin < end; begin = next) {
      auto const rest = size - begin;
      next = std::min(end, begin + (of_table ? full : next_length(full, rest, !has_full_bucket, unit)));
      f(ArenaRange{begin, next, ranks > 1, of_table});
      if (!of_table) has_bucket = has_full_bucket = true;
    }
  };
  auto const add_range = [&](Index begin, Index end, bool of_table) {
    if (begin == end) return;
    if (ranks == 1) return of_table ? add_unsplit(begin, end, true) : split(begin, end, false);
    auto const last = end / block * block, first = (begin + block - 1) / block * block;
    auto const middle = last - std::max<Index>(0, last - first) / unit * unit;
    if (middle >= last) return add_unsplit(begin, end, of_table);
    add_unsplit(begin, middle, of_table);
    split(middle, last, of_table);
    add_unsplit(last, end, of_table);
  };
  Index begin = 0;
  for (auto const& table : tables) {
    auto const end = table.offset + nn::ParameterLayout::padded(table.rows * table.width);
    add_range(begin, table.offset, false);
    add_range(table.offset, end, true);
    begin = end;
  }
  add_range(begin, size, false);
  if (!has_bucket) add_unsplit(0, 0, false);
}

}}}  // namespace lockstep::parallel::detail
