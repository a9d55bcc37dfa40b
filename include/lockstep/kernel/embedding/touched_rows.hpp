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

  [[nodiscard]] static constexpr Index words_for(Index rows) noexcept { return (rows + 63) / 64; }

  [[nodiscard]] std::span<std::uint64_t> bits() const noexcept {
    return {words, static_cast<std::size_t>(words_for(rows))};
  }
  /// Returns the offset after the table's last element in the arena.
  [[nodiscard]] Index end() const noexcept { return offset + rows * width; }
  [[nodiscard]] bool contains(Index row) const noexcept { return (words[row / 64] >> (row % 64) & 1) != 0; }

  void insert(Index row) const noexcept { words[row / 64] |= std::uint64_t{1} << (row % 64); }
  void insert(std::span<std::int32_t const> rows_touched) const noexcept {
    for (auto row : rows_touched) insert(static_cast<Index>(row));
  }
  void insert_all() const noexcept {
    for (Index row = 0; row < rows; ++row) insert(row);
  }
  void clear() const noexcept { std::fill(bits().begin(), bits().end(), std::uint64_t{0}); }

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

/// The parts of a range of an arena whose gradient was written: all except the untouched rows of `tables`. The tables
/// are in the order of the arena.
class WrittenParts {
 public:
  WrittenParts(std::span<TouchedRows const> tables, Index begin, Index end) noexcept
      : tables_(tables), at_(begin), end_(end) {}

  /// Sets [from, to) to the next part, in order. Returns false after the last one.
  [[nodiscard, gnu::always_inline]] bool next(Index& from, Index& to) noexcept {
    if (!tables_.empty()) return next_of_tables(from, to);
    from = at_;
    to = at_ = end_;
    return from < to;
  }

 private:
  // Not inlined, because parts of tables are long.
  [[gnu::noinline]] bool next_of_tables(Index& from, Index& to) noexcept {
    while (at_ < end_ && !tables_.empty()) {
      auto const& table = tables_.front();
      if (table.rows * table.width == 0 || table.end() <= at_) {
        tables_ = tables_.subspan(1);
        continue;
      }
      from = at_;
      if (at_ < table.offset) {
        to = at_ = std::min(end_, table.offset);
        return true;
      }
      auto const stop = std::min(end_, table.end());
      auto const row = (at_ - table.offset) / table.width;
      auto const last = table.end_of_run(row, (stop - table.offset - 1) / table.width + 1);
      to = at_ = std::min(stop, table.offset + last * table.width);
      if (table.contains(row)) return true;
    }
    from = at_;
    to = at_ = end_;
    return from < to;
  }

  std::span<TouchedRows const> tables_;
  Index at_, end_;
};

/// Calls f(begin, end) in order for the WrittenParts of [begin, end).
template <class Function>
[[gnu::always_inline]] inline void for_written(std::span<TouchedRows const> tables, Index begin, Index end,
                                               Function&& f) {
  WrittenParts parts(tables, begin, end);
  for (Index from, to; parts.next(from, to);) f(from, to);
}

}}}  // namespace lockstep::kernel
