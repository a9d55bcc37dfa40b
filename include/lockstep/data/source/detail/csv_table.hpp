// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/progress.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/data/source/detail/csv_field.hpp>
#include <lockstep/data/source/detail/csv_parts.hpp>
#include <lockstep/data/source/detail/excerpt.hpp>
#include <lockstep/data/source/detail/text_file.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Reads the fields of one row in order.
class CsvRow {
 public:
  /// @param text begins with the row, at `offset` of the file
  CsvRow(TextFile const& file, std::string_view text, std::size_t offset, char separator) noexcept
      : file_(file), text_(text), offset_(offset), separator_(separator) {}

  [[nodiscard]] bool over() const noexcept { return over_; }
  /// @throws DataError if the row is over, or its quotes are wrong
  CsvField next();
  /// @throws DataError unless the row is over
  void expect_end() const;
  /// Returns advice for an error in this row if it looks like a comment, else an empty string.
  [[nodiscard]] char const* comment_remedy() const noexcept {
    return text_.starts_with('#') ? "; if lines that begin with # are comments, set CsvOptions::comment to '#'" : "";
  }
  /// @throws DataError "file:line: why", for a place in the row
  [[noreturn]] void fail(std::size_t at, std::string const& why) const { file_.fail(offset_ + at, why); }

 private:
  [[noreturn]] void changed() const;

  TextFile const& file_;
  std::string_view text_;
  std::size_t offset_, next_ = 0;  // of the row in the file, of the next field in the row
  char separator_;
  bool over_ = false;
};

/// Returns the texts of a row's fields. @throws DataError as `next`
std::vector<std::string> texts_of(CsvRow row);

/// Threads that index the rows of a file, and the display of their progress.
struct CsvThreads {
  int count = 1;
  Progress* progress = nullptr;
};

struct CsvSource {
  std::string path;
  char separator = ',';
  std::string encoding = "utf-8";
  char comment = '\0';  ///< that begins a line to skip; '\0': none
};

/// Indexes the rows of a CSV file (RFC 4180): quoted fields, doubled quotes, line breaks within quotes, LF or CR LF
/// line ends, an optional byte order mark. Skips empty lines and comments. Checks that all rows have the same number of
/// columns.
class CsvTable {
 public:
  /// Reads and finds only the first row. @throws DataError if the file cannot be read or holds no row
  explicit CsvTable(CsvSource source);
  /// Finds and checks all rows.
  /// @param kinds describes the expected columns, for messages
  /// @throws DataError if the file cannot be read or holds no row, or a row has another number of columns
  CsvTable(CsvSource source, std::uint64_t max_held_bytes, CsvThreads threads, std::size_t columns,
           std::string const& kinds);
  /// Finds and checks all rows of a file whose first row has these names, in any order and among other names. Drops the
  /// first row.
  /// @throws DataError also if a name is missing or occurs twice
  CsvTable(CsvSource source, std::uint64_t max_held_bytes, CsvThreads threads, std::vector<std::string> const& names);

  [[nodiscard]] Index rows() const noexcept { return static_cast<Index>(begins_.size()); }
  /// Returns a row, valid until this thread calls again.
  [[nodiscard]] CsvRow row(Index i) const;
  /// @throws DataError "file:line: why", for the start of the row
  [[noreturn]] void fail(Index i, std::string const& why) const;
  /// Returns a hash of the whole file.
  [[nodiscard]] std::uint64_t fingerprint() const { return file_.hash(); }
  void drop_first_row() { begins_.erase(begins_.begin()); }
  /// Reads all fields of a row and returns the named fields, in the order of the names. Returns nothing, and reads
  /// nothing, without names.
  [[nodiscard]] std::vector<CsvField> named(CsvRow& row) const;
  /// Returns the number, from 1, of the file's column for column `place` of the row type.
  [[nodiscard]] std::size_t number(std::size_t place) const noexcept;
  [[nodiscard]] std::string const& path() const noexcept { return file_.path(); }

 private:
  /// Indexes with several threads. The window may hold the first row. @returns false if one thread has to do it,
  /// including for an irregular file, whose error it finds
  bool find_rows_by_parts(CsvThreads const& threads, std::size_t columns);
  struct Measured {
    std::size_t columns, bytes;
  };

  static std::string count(std::size_t n, std::string const& what);
  void find_rows(TextWindow& window, std::size_t columns, std::string const& which, std::string const& or_else);
  /// Drops empty lines and comments, and appends the start of the next row, if there is one.
  /// @throws DataError if the whole file has no row
  bool find_row(TextWindow& window);
  /// Drops a comment at the window's beginning; grows the window to hold it.
  void drop_comment(TextWindow& window);
  /// Returns the size of the row at the window's beginning; grows the window to hold it.
  Measured measure(TextWindow& window);

  TextFile file_;
  char separator_, comment_;
  std::vector<std::size_t> begins_;  // of the rows
  std::size_t end_ = 0;              // of the last row
  std::size_t columns_ = 0;
  std::vector<std::size_t> named_;  // the file's columns, from 0, in the order of the names
};

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/csv_table.ipp>
#endif
