// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/detail/of_bytes.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel {

/// Sums over ranks the gradients that go by rows. Ranks touch different rows, so each first learns which rows any rank
/// has touched. It moves those to the front of the table's gradient, where they make one piece for the communicator,
/// and back to their places when they are summed: nothing is sent of rows that nobody touched, and no memory is needed
/// beyond a bit per row and rank.
class RowExchange {
 public:
  /// `tables` as every rank has them: contiguous bits, in the arena's order; their bits outlive this object.
  RowExchange(std::span<kernel::TouchedRows const> tables, int ranks)
      : tables_(tables.begin(), tables.end()), rows_(tables.size()), pieces_(tables.size()) {
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      words_ += tables_[i].bits().size();
      rows_[i].reserve(static_cast<std::size_t>(tables_[i].rows));
    }
    all_.resize(words_ * static_cast<std::size_t>(ranks));
  }

  /// Afterwards every rank has the sums, and the union of the rows that were touched.
  /// @collective   @determinism bitwise, and equal to the sum of dense gradients
  template <class Communicator>
  void sum(Communicator& communicator, float* gradients) {
    sum(communicator, gradients, detail::InPlace{gradients});
  }
  /// The same, summed where `wire` says: rounded there, the sums of dense gradients that are.
  template <class Communicator, class Wire>
  void sum(Communicator& communicator, float* gradients, Wire const& wire) {
    ready_ = Clock::seconds();
    sends_ = communicator.size() > 1 || wire.rounds();
    if (tables_.empty() || !sends_) return;
    detail::all_gather_bytes(communicator, tables_[0].words, all_.data(), words_ * sizeof(std::uint64_t));
    for (std::size_t at = words_; at < all_.size(); ++at) all_[at % words_] |= all_[at];
    auto const* united = all_.data();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      auto const& table = tables_[i];
      gather(table, united, rows_[i], gradients);
      united += table.bits().size();
      pieces_[i] = {.type = wire.type(), .data = wire.at(table.offset), .count = std::ssize(rows_[i]) * table.width};
      wire.round(front(i));
      communicator.start(pieces_[i]);
    }
    communicator.finish();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      wire.widen(front(i));
      scatter(tables_[i], rows_[i], gradients);
    }
  }

  /// One entry per table, of the last sum.
  void add_times(std::vector<BucketTimes>& times) const {
    if (!sends_) return add_times(times, tables_, ready_);
    for (std::size_t i = 0; i < pieces_.size(); ++i)
      times.push_back({static_cast<std::size_t>(pieces_[i].count) * size_of(pieces_[i].type), ready_,
                       pieces_[i].started_seconds, pieces_[i].finished_seconds, bytes(tables_[i], pieces_[i].type)});
  }
  /// The same of a rank that has nobody to exchange rows with, whose backward ended at `ready`.
  static void add_times(std::vector<BucketTimes>& times, std::span<kernel::TouchedRows const> tables, double ready) {
    for (auto const& table : tables)
      times.push_back(
          {static_cast<std::size_t>(table.count() * table.width) * sizeof(float), ready, 0, 0, bytes(table)});
  }

 private:
  [[nodiscard]] static std::size_t bytes(kernel::TouchedRows const& table,
                                         ElementType type = ElementType::float32) noexcept {
    return static_cast<std::size_t>(table.rows * table.width) * size_of(type);
  }
  /// Where a table's rows lie while they are summed.
  [[nodiscard]] detail::ArenaPart front(std::size_t i) const noexcept {
    return {tables_[i].offset, tables_[i].offset + pieces_[i].count};
  }

  /// Moves the rows of the union to the front, in order, with zeros for those that this rank has not touched. Row k of
  /// the list lies at k or behind it, so what is overwritten has been moved already; `scatter` goes back in reverse.
  static void gather(kernel::TouchedRows const& table, std::uint64_t const* united, std::vector<std::int32_t>& rows,
                     float* gradients) {
    auto const mine = table.bits();
    auto const* const base = gradients + table.offset;
    auto* to = gradients + table.offset;
    rows.clear();
    for (std::size_t word = 0; word < mine.size(); ++word) {
      for (auto left = united[word]; left != 0; left &= left - 1, to += table.width) {
        auto const row = static_cast<Index>(word) * 64 + std::countr_zero(left);
        if (!table.contains(row))
          std::fill_n(to, table.width, 0.0f);
        else if (row != std::ssize(rows))
          std::copy_n(base + row * table.width, table.width, to);
        rows.push_back(static_cast<std::int32_t>(row));
      }
      mine[word] = united[word];
    }
  }
  static void scatter(kernel::TouchedRows const& table, std::vector<std::int32_t> const& rows, float* gradients) {
    auto* const base = gradients + table.offset;
    for (auto k = std::ssize(rows); k-- > 0;)
      if (auto const row = rows[static_cast<std::size_t>(k)]; row != k)
        std::copy_n(base + k * table.width, table.width, base + row * table.width);
  }

  std::vector<kernel::TouchedRows> tables_;
  std::vector<std::vector<std::int32_t>> rows_;  // of each table, those that any rank touched
  std::vector<comm::Piece> pieces_;
  std::vector<std::uint64_t> all_;  // the bits of all tables, rank by rank
  std::size_t words_ = 0;           // of a rank
  double ready_ = 0;
  bool sends_ = false;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
