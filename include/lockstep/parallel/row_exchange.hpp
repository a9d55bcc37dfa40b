// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <lockstep/comm/piece.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/touched_rows.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/take_union.hpp>

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
    if (tables_.empty() || communicator.size() == 1) return;
    ready_ = Clock::seconds();
    communicator.all_gather(tables_[0].words, all_.data(), words_ * sizeof(std::uint64_t));
    for (std::size_t at = words_; at < all_.size(); ++at) all_[at % words_] |= all_[at];
    auto const* united = all_.data();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      auto const& table = tables_[i];
      take_union(table, united, gradients);
      united += table.bits().size();
      list(table, rows_[i]);
      gather(table, rows_[i], gradients);
      pieces_[i] = {ElementType::float32,
                    gradients + table.offset,
                    static_cast<Index>(rows_[i].size()) * table.width,
                    comm::Operation::sum,
                    {}};
      communicator.start(pieces_[i]);
    }
    communicator.finish();
    for (std::size_t i = 0; i < tables_.size(); ++i) scatter(tables_[i], rows_[i], gradients);
  }

  /// One entry per table, of the last sum.
  void add_times(std::vector<BucketTimes>& times) const {
    for (auto const& piece : pieces_)
      times.push_back({static_cast<std::size_t>(piece.count) * sizeof(float), ready_, piece.started_seconds,
                       piece.finished_seconds});
  }

 private:
  static void list(kernel::TouchedRows const& table, std::vector<std::int32_t>& rows) {
    rows.clear();
    table.for_runs(0, table.rows, [&](Index first, Index last, bool touched) {
      for (; touched && first < last; ++first) rows.push_back(static_cast<std::int32_t>(first));
    });
  }
  // Row k of the list lies at k or behind it. So nothing is overwritten that is still to be moved when rows move to the
  // front in order, and back in reverse order.
  static void gather(kernel::TouchedRows const& table, std::vector<std::int32_t> const& rows, float* gradients) {
    auto* const base = gradients + table.offset;
    for (std::size_t k = 0; k < rows.size(); ++k) move(base, rows[k], static_cast<Index>(k), table.width);
  }
  static void scatter(kernel::TouchedRows const& table, std::vector<std::int32_t> const& rows, float* gradients) {
    auto* const base = gradients + table.offset;
    for (std::size_t k = rows.size(); k-- > 0;) move(base, static_cast<Index>(k), rows[k], table.width);
  }
  static void move(float* base, Index from, Index to, Index width) {
    if (from != to) std::copy_n(base + from * width, width, base + to * width);
  }

  std::vector<kernel::TouchedRows> tables_;
  std::vector<std::vector<std::int32_t>> rows_;  // of each table, those that any rank touched
  std::vector<comm::Piece> pieces_;
  std::vector<std::uint64_t> all_;  // the bits of all tables, rank by rank
  std::size_t words_ = 0;           // of a rank
  double ready_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel
