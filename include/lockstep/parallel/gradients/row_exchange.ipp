// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/parallel/gradients/row_exchange.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel {

LOCKSTEP_INLINE RowExchange::RowExchange(std::span<kernel::TouchedRows const> tables, int ranks)
    : tables_(tables.begin(), tables.end()), rows_(tables.size()), operations_(tables.size()) {
  for (std::size_t i = 0; i < tables_.size(); ++i) {
    words_ += tables_[i].bits().size();
    rows_[i].reserve(static_cast<std::size_t>(tables_[i].rows));
  }
  all_.resize(words_ * static_cast<std::size_t>(ranks));
}

LOCKSTEP_INLINE void RowExchange::add_times(std::vector<BucketTimes>& times) const {
  if (!sends_) return add_times(times, tables_, ready_);
  for (std::size_t i = 0; i < operations_.size(); ++i)
    times.push_back({static_cast<std::size_t>(operations_[i].count) * size_of(operations_[i].type), ready_,
                     operations_[i].started_seconds, operations_[i].finished_seconds,
                     bytes(tables_[i], operations_[i].type)});
}

LOCKSTEP_INLINE void RowExchange::add_times(std::vector<BucketTimes>& times,
                                            std::span<kernel::TouchedRows const> tables, double ready) {
  for (auto const& table : tables)
    times.push_back({static_cast<std::size_t>(table.count() * table.width) * sizeof(float), ready, 0, 0, bytes(table)});
}

LOCKSTEP_INLINE std::size_t RowExchange::bytes(kernel::TouchedRows const& table, ElementType type) noexcept {
  return static_cast<std::size_t>(table.rows * table.width) * size_of(type);
}

LOCKSTEP_INLINE detail::ArenaPart RowExchange::front(std::size_t i) const noexcept {
  return {tables_[i].offset, tables_[i].offset + operations_[i].count};
}

LOCKSTEP_INLINE void RowExchange::gather(kernel::TouchedRows const& table, std::uint64_t const* row_union,
                                         std::vector<std::int32_t>& rows, float* gradients) {
  auto const mine = table.bits();
  auto const* const base = gradients + table.offset;
  auto* to = gradients + table.offset;
  rows.clear();
  for (std::size_t word = 0; word < mine.size(); ++word) {
    for (auto left = row_union[word]; left != 0; left &= left - 1, to += table.width) {
      auto const row = static_cast<Index>(word) * 64 + std::countr_zero(left);
      if (!table.contains(row))
        std::fill_n(to, table.width, 0.0f);
      else if (row != std::ssize(rows))
        std::copy_n(base + row * table.width, table.width, to);
      rows.push_back(static_cast<std::int32_t>(row));
    }
    mine[word] = row_union[word];
  }
}

LOCKSTEP_INLINE void RowExchange::scatter(kernel::TouchedRows const& table, std::vector<std::int32_t> const& rows,
                                          float* gradients) {
  auto* const base = gradients + table.offset;
  for (auto k = std::ssize(rows); k-- > 0;)
    if (auto const row = rows[static_cast<std::size_t>(k)]; row != k)
      std::copy_n(base + k * table.width, table.width, base + row * table.width);
}

}}}  // namespace lockstep::parallel
