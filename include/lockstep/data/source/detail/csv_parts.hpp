// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/index.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/detail/data_file.hpp>
#include <lockstep/data/source/detail/csv_field.hpp>
#include <lockstep/data/source/detail/text_window.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Rows found in a part of a CSV file. A part begins after a line feed, or at the beginning of the file, and ends with
/// a line feed, or with the file. It can therefore only begin at a row or within a quoted field.
struct CsvPartRows {
  std::vector<std::uint32_t> begins;  ///< of the rows, from the part's begin
  std::size_t first = 0;              ///< start of the row scan
  std::optional<std::size_t> open;    ///< start of a row whose quoted field does not close in the part
  bool regular = true;                ///< false: a row has another number of columns or wrong quotes
};

/// Finds the rows from `first` on, which must be the start of a row or of empty lines.
CsvPartRows scan_csv_rows(std::string_view text, std::size_t first, char separator, std::size_t columns);

/// Finds the rows of a part that begins within a quoted field. `first` is the start of the next row, or the part's end.
CsvPartRows scan_csv_rows_in_quotes(std::string_view text, char separator, std::size_t columns);

/// All rows of a CSV file, found by several threads.
struct CsvIndex {
  std::vector<std::size_t> begins;
  std::size_t end = 0;  ///< of the last row
};

/// Finds all rows of a CSV file. Threads scan parts of it under both assumptions: that the part begins with a row, and
/// that it begins within a quoted field. The scans are then joined in the file's order, so the result does not depend
/// on the number of threads.
class CsvIndexer {
 public:
  CsvIndexer(DataFile const& file, char separator, std::size_t columns, Progress* progress,
             Decoding decoding = Decoding::check, std::size_t part_bytes = std::size_t{1} << 20)
      : file_(file),
        separator_(separator),
        columns_(columns),
        progress_(progress),
        decoding_(decoding),
        part_bytes_(part_bytes) {}

  /// @returns nothing for an irregular file, for example if a row has another number of columns. The caller then scans
  /// row by row, for an exact error.
  [[nodiscard]] std::optional<CsvIndex> find(ThreadPool& pool);

 private:
  struct Scans {
    CsvPartRows at_row, in_quotes;
  };
  static constexpr std::size_t look = 4096;

  static bool has_many_controls(std::string_view text);
  void read(std::size_t begin, std::size_t end, std::string& text) const;
  /// Finds the first line feed after each multiple of the part's size. @returns false if a line exceeds the maximum
  /// length
  bool cut_into_parts();
  /// Finds the end of the row that begins at `begin`. @returns nothing if it is irregular
  [[nodiscard]] std::optional<std::size_t> end_of_row(std::size_t begin) const;
  [[nodiscard]] std::optional<CsvIndex> join(std::vector<Scans>& scans) const;

  DataFile const& file_;
  char separator_;
  std::size_t columns_;
  Progress* progress_;
  Decoding decoding_;
  std::size_t part_bytes_;
  std::vector<std::size_t> parts_;  // their starts, and the file's end
  std::atomic<bool> irregular_ = false;
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/csv_parts.ipp>
#endif
