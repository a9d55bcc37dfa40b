// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <span>

#include <lockstep/core/index.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Set of rows of one parameter's gradient that were written in this step, one bit each. Other rows count as zero for
/// any content, so a table does not need to be set to zero if a batch touches few rows. Does not own its bits.
struct TouchedRows {
  Index offset = 0;                ///< of row 0 in the arena
  Index rows = 0;                  ///< of the table
  Index width = 0;                 ///< elements of a row
  std::uint64_t* words = nullptr;  ///< [words_for(rows)], row r is bit r % 64 of word r / 64; the last ones are zero

  /// Returns the words for a table of this many rows.
  [[nodiscard]] static constexpr Index words_for(Index rows) noexcept { return (rows + 63) / 64; }

  /// Returns all words.
  [[nodiscard]] std::span<std::uint64_t> bits() const noexcept {
    return {words, static_cast<std::size_t>(words_for(rows))};
  }
  /// Returns the offset after the table's last element in the arena.
  [[nodiscard]] Index end() const noexcept { return offset + rows * width; }
  /// Returns whether a row of [0, rows) was written.
  [[nodiscard]] bool contains(Index row) const noexcept { return (words[row / 64] >> (row % 64) & 1) != 0; }

  /// Marks a row as written.
  void insert(Index row) const noexcept { words[row / 64] |= std::uint64_t{1} << (row % 64); }
  /// Marks rows as written; they may repeat.
  void insert(std::span<std::int32_t const> rows_touched) const noexcept {
    for (auto row : rows_touched) insert(static_cast<Index>(row));
  }
  /// Marks all rows as written.
  void insert_all() const noexcept {
    for (Index row = 0; row < rows; ++row) insert(row);
  }
  /// Marks no row as written.
  void clear() const noexcept { std::fill(bits().begin(), bits().end(), std::uint64_t{0}); }

  /// Returns the number of written rows.
  [[nodiscard]] Index count() const noexcept {
    Index sum = 0;
    for (auto word : bits()) sum += std::popcount(word);
    return sum;
  }

  /// Returns the first row after `row` whose bit differs, at most `last`.
  [[nodiscard]] Index end_of_run(Index row, Index last) const noexcept {
    bool const touched = contains(row);
    auto const others = [&](Index word) { return touched ? ~words[word] : words[word]; };
    auto word = row / 64;
    auto left = others(word) >> (row % 64) << (row % 64);
    while (left == 0 && ++word < words_for(last)) left = others(word);
    return left == 0 ? last : std::min(last, word * 64 + std::countr_zero(left));
  }

  /// Calls f(begin, end, touched) for the longest runs of rows in [first, last) with equal bits, in order.
  template <class Function>
  [[gnu::always_inline]] void for_runs(Index first, Index last, Function&& f) const {
    while (first < last) {
      auto const end = end_of_run(first, last);
      f(first, end, contains(first));
      first = end;
    }
  }
};

/// Calls f(begin, end) in order for the parts of [begin, end) of an arena whose gradient was written: all except the
/// untouched rows of `tables`. The tables are in the order of the arena.
template <class Function>
[[gnu::always_inline]] inline void for_written(std::span<TouchedRows const> tables, Index begin, Index end,
                                               Function&& f) {
  for (auto const& table : tables) {
    if (table.rows * table.width == 0 || table.end() <= begin) continue;
    if (table.offset >= end || begin >= end) break;
    if (begin < table.offset) f(begin, table.offset);
    begin = std::max(begin, table.offset);
    auto const stop = std::min(end, table.end());
    table.for_runs((begin - table.offset) / table.width, (stop - table.offset - 1) / table.width + 1,
                   [&](Index first, Index last, bool touched) {
                     if (touched)
                       f(std::max(begin, table.offset + first * table.width),
                         std::min(stop, table.offset + last * table.width));
                   });
    begin = stop;
  }
  if (begin < end) f(begin, end);
}

}}}  // namespace lockstep::kernel
