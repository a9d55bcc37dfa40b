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
  CsvField next() {
    if (over_) changed();
    auto const field = csv_field(text_, next_, separator_);
    if (field.end == CsvField::End::open_quote)
      fail(field.begin, "a quoted field begins here and never ends: " + excerpt(field.text) +
                            "; close the quote, and double the quotes inside");
    if (field.end == CsvField::End::stray_text)
      fail(field.next, "a quoted field ends and text follows: " + excerpt(text_.substr(field.next)) +
                           "; expected a separator or the end of the line; double the quotes inside a field");
    next_ = field.next;
    over_ = field.end == CsvField::End::row;
    return field;
  }
  /// @throws DataError unless the row is over
  void expect_end() const {
    if (!over_) changed();
  }
  /// @throws DataError "file:line: why", for a place in the row
  [[noreturn]] void fail(std::size_t at, std::string const& why) const { file_.fail(offset_ + at, why); }

 private:
  [[noreturn]] void changed() const {
    fail(0,
         "has another number of columns than when it was indexed; leave the file alone while training, and open it "
         "again");
  }

  TextFile const& file_;
  std::string_view text_;
  std::size_t offset_, next_ = 0;  // of the row in the file, of the next field in the row
  char separator_;
  bool over_ = false;
};

/// Returns the texts of a row's fields. @throws DataError as `next`
inline std::vector<std::string> texts_of(CsvRow row) {
  std::vector<std::string> out;
  while (!row.over()) row.next().copy_to(out.emplace_back());
  return out;
}

/// Threads that index the rows of a file, and the display of their progress.
struct CsvThreads {
  int count = 1;
  Progress* progress = nullptr;
};

/// Indexes the rows of a CSV file (RFC 4180): quoted fields, doubled quotes, line breaks within quotes, LF or CR LF
/// line ends, an optional byte order mark. Skips empty lines. Checks that all rows have the same number of columns.
class CsvTable {
 public:
  /// Finds only the first row. @throws DataError if the file cannot be read or holds no row
  CsvTable(std::string path, char separator) : file_(std::move(path), 0), separator_(separator) {
    TextWindow window;
    if (find_row(window)) end_ = begins_[0] + measure(window).bytes;
  }
  /// Finds and checks all rows.
  /// @param kinds describes the expected columns, for messages
  /// @throws DataError if the file cannot be read or holds no row, or a row has another number of columns
  CsvTable(std::string path, char separator, std::uint64_t max_held_bytes, CsvThreads threads, std::size_t columns,
           std::string const& kinds)
      : file_(std::move(path), max_held_bytes), separator_(separator) {
    if (find_rows_by_parts(threads, columns)) return;
    TextWindow window;
    find_rows(window, columns, " (" + kinds + ")", ", or change the row type");
  }
  /// Finds and checks all rows of a file whose first row has these names, in any order and among other names. Drops the
  /// first row.
  /// @throws DataError also if a name is missing or occurs twice
  CsvTable(std::string path, char separator, std::uint64_t max_held_bytes, CsvThreads threads,
           std::vector<std::string> const& names)
      : file_(std::move(path), max_held_bytes), separator_(separator) {
    TextWindow window;
    find_row(window);
    measure(window);
    auto const header = texts_of({file_, window.text(), begins_[0], separator_});
    for (auto const& name : names) {
      auto const found = std::find(header.begin(), header.end(), name);
      if (found == header.end() || std::find(found + 1, header.end(), name) != header.end()) {
        std::string has;
        for (auto const& other : header) has += (has.empty() ? "" : ", ") + excerpt(other);
        fail(0, (found == header.end() ? "no column is named " : "two columns are named ") + excerpt(name) +
                    "; the first line has " + has + "; correct the name in CsvOptions::columns or in the file");
      }
      named_.push_back(static_cast<std::size_t>(found - header.begin()));
    }
    begins_.clear();
    if (!find_rows_by_parts(threads, header.size())) find_rows(window, header.size(), ", as the first line has,", "");
    drop_first_row();
  }

  [[nodiscard]] Index rows() const noexcept { return static_cast<Index>(begins_.size()); }
  /// Returns a row, valid until this thread calls again.
  [[nodiscard]] CsvRow row(Index i) const {
    auto const place = static_cast<std::size_t>(i);
    auto const begin = begins_[place], end = place + 1 < begins_.size() ? begins_[place + 1] : end_;
    return {file_, file_.read(begin, end), begin, separator_};
  }
  /// @throws DataError "file:line: why", for the start of the row
  [[noreturn]] void fail(Index i, std::string const& why) const {
    file_.fail(begins_[static_cast<std::size_t>(i)], why);
  }
  /// Returns a hash of the whole file.
  [[nodiscard]] std::uint64_t fingerprint() const { return file_.hash(); }
  void drop_first_row() { begins_.erase(begins_.begin()); }
  /// Reads all fields of a row and returns the named fields, in the order of the names. Returns nothing, and reads
  /// nothing, without names.
  [[nodiscard]] std::vector<CsvField> named(CsvRow& row) const {
    std::vector<CsvField> fields, out;
    if (named_.empty()) return out;
    fields.reserve(columns_);
    for (std::size_t column = 0; column < columns_; ++column) fields.push_back(row.next());
    for (auto const column : named_) out.push_back(fields[column]);
    return out;
  }
  /// Returns the number, from 1, of the file's column for column `place` of the row type.
  [[nodiscard]] std::size_t number(std::size_t place) const noexcept {
    return 1 + (named_.empty() ? place : named_[place]);
  }
  [[nodiscard]] std::string const& path() const noexcept { return file_.path(); }

 private:
  /// Indexes with several threads. The window may hold the first row. @returns false if one thread has to do it,
  /// including for an irregular file, whose error it finds
  bool find_rows_by_parts(CsvThreads const& threads, std::size_t columns) {
    if (threads.count <= 1 && !threads.progress) return false;
    ThreadPool pool(threads.count);
    auto found = CsvIndexer(file_.file(), separator_, columns, threads.progress).find(pool);
    if (!found) return false;
    file_.hold_without_window();
    begins_ = std::move(found->begins);
    end_ = found->end;
    columns_ = columns;
    return true;
  }
  struct Measured {
    std::size_t columns, bytes;
  };

  static std::string count(std::size_t n, std::string const& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  }
  void find_rows(TextWindow& window, std::size_t columns, std::string const& which, std::string const& or_else) {
    columns_ = columns;
    while (find_row(window)) {
      auto const row = measure(window);
      if (row.columns != columns)
        fail(rows() - 1, "has " + count(row.columns, "column") + ", but " + std::to_string(columns) + which +
                             " were expected; correct the line, quote fields that hold the separator" + or_else);
      end_ = begins_.back() + row.bytes;
      window.drop(row.bytes);
    }
    begins_.shrink_to_fit();
  }
  /// Drops empty lines, and appends the start of the next row, if there is one.
  /// @throws DataError if the whole file has no row
  bool find_row(TextWindow& window) {
    for (;;) {
      auto const text = window.text();
      std::size_t empty = 0;
      while (empty < text.size() && csv_line_break(text, empty) != 0) ++empty;
      window.drop(empty);
      if (empty < text.size()) {
        begins_.push_back(window.offset());
        return true;
      }
      if (window.ended()) break;
      file_.grow(window);
    }
    if (begins_.empty()) throw DataError(path() + ": holds no rows; it must hold at least one sample");
    return false;
  }
  /// Returns the size of the row at the window's beginning; grows the window to hold it.
  Measured measure(TextWindow& window) {
    for (;; file_.grow(window)) {
      auto const text = window.text();
      Measured out{0, 0};
      auto end = CsvField::End::separator;
      for (; end == CsvField::End::separator; ++out.columns) {
        auto const field = csv_field(text, out.bytes, separator_);
        end = field.end;
        out.bytes = field.next;
      }
      // A field that reaches the window's end may continue.
      if (out.bytes < text.size() || window.ended()) {
        if (end != CsvField::End::row) texts_of({file_, text, begins_.back(), separator_});  // throws
        return out;
      }
    }
  }

  TextFile file_;
  char separator_;
  std::vector<std::size_t> begins_;  // of the rows
  std::size_t end_ = 0;              // of the last row
  std::size_t columns_ = 0;
  std::vector<std::size_t> named_;  // the file's columns, from 0, in the order of the names
};

}}}  // namespace lockstep::data::detail
