// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/clock.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/byte_collectives.hpp>
#include <lockstep/parallel/detail/gradient_wire.hpp>
#include <lockstep/parallel/policy.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

/// Sums gradients by rows over ranks. Ranks touch different rows, so they first compute the union of all touched rows.
/// Each copies these rows to the front of the table's gradient, where one operation sums them, and then back. Untouched
/// rows are not sent. The only extra memory is a bit per row and rank.
class RowExchange {
 public:
  /// @param tables equal on all ranks, with contiguous bits, in the arena's order; their bits must outlive this object
  RowExchange(std::span<kernel::TouchedRows const> tables, int ranks);

  /// Sums the gradients of all tables. Afterwards every rank has the sums, and the union of touched rows.
  /// @collective   @determinism bitwise, and equal to the sum of dense gradients
  template <class Communicator>
  void sum(Communicator& communicator, float* gradients) {
    sum(communicator, gradients, detail::InPlace{gradients});
  }
  /// Sums as above, in the memory and type of `wire`. Rounded sums equal rounded sums of dense gradients.
  template <class Communicator, class Wire>
  void sum(Communicator& communicator, float* gradients, Wire const& wire) {
    ready_ = Clock::seconds();
    sends_ = communicator.size() > 1 || wire.rounds();
    if (tables_.empty() || !sends_) return;
    detail::all_gather_bytes(communicator, tables_[0].words, all_.data(), words_ * sizeof(std::uint64_t));
    for (std::size_t at = words_; at < all_.size(); ++at) all_[at % words_] |= all_[at];
    auto const* row_union = all_.data();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      auto const& table = tables_[i];
      gather(table, row_union, rows_[i], gradients);
      row_union += table.bits().size();
      operations_[i] = {
          .type = wire.type(), .data = wire.at(table.offset), .count = std::ssize(rows_[i]) * table.width};
      wire.round(front(i));
      communicator.start(operations_[i]);
    }
    communicator.finish();
    for (std::size_t i = 0; i < tables_.size(); ++i) {
      wire.widen(front(i));
      scatter(tables_[i], rows_[i], gradients);
    }
  }

  /// Adds one entry per table, for the last sum.
  void add_times(std::vector<BucketTimes>& times) const;
  /// Adds entries for a rank without peers, whose backward ended at `ready`.
  static void add_times(std::vector<BucketTimes>& times, std::span<kernel::TouchedRows const> tables, double ready);

 private:
  [[nodiscard]] static std::size_t bytes(kernel::TouchedRows const& table,
                                         ElementType type = ElementType::float32) noexcept;
  /// Returns the range of a table's rows during the sum.
  [[nodiscard]] detail::ArenaPart front(std::size_t i) const noexcept;

  /// Copies the rows of the union to the front, in order, with zeros for rows that this rank has not touched. Row k of
  /// the list is at k or later, so no row is overwritten before its copy. `scatter` copies them back in reverse order.
  static void gather(kernel::TouchedRows const& table, std::uint64_t const* row_union, std::vector<std::int32_t>& rows,
                     float* gradients);
  static void scatter(kernel::TouchedRows const& table, std::vector<std::int32_t> const& rows, float* gradients);

  std::vector<kernel::TouchedRows> tables_;
  std::vector<std::vector<std::int32_t>> rows_;  // rows of each table that any rank touched
  std::vector<comm::CollectiveOperation> operations_;
  std::vector<std::uint64_t> all_;  // bits of all tables, rank by rank
  std::size_t words_ = 0;           // words of one rank
  double ready_ = 0;
  bool sends_ = false;
};

}}}  // namespace lockstep::parallel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/parallel/gradients/row_exchange.ipp>
#endif
