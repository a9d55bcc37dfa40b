// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/trainer/detail/table_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_COLD_INLINE PredictionTable::PredictionTable(std::string const& path, std::vector<std::string> const& columns,
                                                      parallel::AnySession& session, data::Split const& split,
                                                      std::stop_token stop)
    : columns_(columns),
      session_(session),
      rank_(split.first / split.count),
      ranks_(split.all / split.count),
      table_(path),
      rows_(static_cast<std::size_t>(split.count), TableRows(columns)) {
  if (rank_ == 0) file_.emplace(path, AtomicFile::Order::sequential, std::move(stop));
}

LOCKSTEP_INLINE void PredictionTable::end_step(bool last) {
  if (!parts_.ends_with_step(last)) return;
  std::string here;
  for (auto& rows : rows_) here += rows.take();
  auto const broadcast = [&](std::string rows, int root) {
    session_.broadcast(rows, root);
    return rows;
  };
  parts_.exchange(rank_, ranks_, std::move(here), broadcast, [&](std::string const& rows) {
    if (file_) table_.add(rows);
  });
}

LOCKSTEP_COLD_INLINE void PredictionTable::commit() {
  if (!file_) return;
  file_->write(TableRows::header(columns_) + "\n");
  table_.write_to(*file_);
  file_->commit();
}

LOCKSTEP_COLD_INLINE std::string TableRows::header(std::vector<std::string> const& columns) {
  CsvLine line;
  line.add(columns);
  return line.text();
}

LOCKSTEP_COLD_INLINE std::string TableRows::take() noexcept { return std::exchange(bytes_, {}); }

}}}  // namespace lockstep::train::detail
