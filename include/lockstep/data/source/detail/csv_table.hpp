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
#include <lockstep/data/detail/content_hash.hpp>
#include <lockstep/data/source/detail/text_file.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data::detail {

/// One field of a CSV file, as it stands there.
struct CsvField {
  std::string_view text;  // without the enclosing quotes
  bool doubled = false;   // holds doubled quotes, each of which stands for one
  bool last = false;      // of its row
  std::size_t next = 0;   // where the next field or row begins

  void copy_to(std::string& out) const {
    if (!doubled) {
      out.assign(text);
      return;
    }
    out.clear();
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); i += text[i] == '"' ? 2u : 1u) out += text[i];
  }
};

/// The rows of a CSV file (RFC 4180): quoted fields, doubled quotes, line breaks within quotes, lines that end in LF or
/// CR LF, an optional byte order mark. Empty lines are skipped. Every row is checked to have the same number of
/// columns.
class CsvTable {
 public:
  /// Finds the first row only. @throws DataError when the file cannot be read or holds no row
  CsvTable(std::string path, char separator)
      : path_(std::move(path)), separator_(separator), content_(read_text_file(path_)) {
    std::string_view const mark = "\xef\xbb\xbf";
    if (!find_row(content_.starts_with(mark) ? mark.size() : 0)) {
      throw DataError(path_ + ": holds no rows; it must hold at least one sample");
    }
  }
  /// Finds and checks all rows; `kinds` says what each of the columns should hold. @throws DataError also when one
  /// differs
  CsvTable(std::string path, char separator, std::size_t columns, std::string const& kinds)
      : CsvTable(std::move(path), separator) {
    find_rows(columns, " (" + kinds + ")", ", or change the row type");
  }
  /// The same of a file whose first row has these names, in any order and among others. It is then gone.
  /// @throws DataError also when a name is missing or stands there twice
  CsvTable(std::string path, char separator, std::vector<std::string> const& names)
      : CsvTable(std::move(path), separator) {
    std::vector<std::string> header;
    auto at = rows_.front();
    for (bool last = false; !last;) {
      auto const f = field(at);
      f.copy_to(header.emplace_back());
      at = f.next;
      last = f.last;
    }
    for (auto const& name : names) {
      auto const found = std::find(header.begin(), header.end(), name);
      if (found == header.end() || std::find(found + 1, header.end(), name) != header.end()) {
        std::string has;
        for (auto const& other : header) has += (has.empty() ? "" : ", ") + excerpt(other);
        fail(rows_.front(), (found == header.end() ? "no column is named " : "two columns are named ") + excerpt(name) +
                                "; the first line has " + has +
                                "; mend the name in CsvOptions::columns or in the file");
      }
      named_.push_back(static_cast<std::size_t>(found - header.begin()));
    }
    find_rows(header.size(), ", as the first line has,", "");
    drop_first_row();
  }

  [[nodiscard]] Index rows() const noexcept { return static_cast<Index>(rows_.size()); }
  /// Where a row begins; `field(at)` reads on from there.
  [[nodiscard]] std::size_t begin(Index row) const noexcept { return rows_[static_cast<std::size_t>(row)]; }
  /// Of the whole file.
  [[nodiscard]] std::uint64_t fingerprint() const noexcept { return content_hash_; }
  void drop_first_row() { rows_.erase(rows_.begin()); }
  /// Where the named fields of a row begin, in the order of the names; nothing where none were given.
  [[nodiscard]] std::vector<std::size_t> named(Index row) const {
    std::vector<std::size_t> begins, out;
    if (named_.empty()) return out;
    auto at = begin(row);
    for (bool last = false; !last;) {
      begins.push_back(at);
      auto const f = field(at);
      at = f.next;
      last = f.last;
    }
    for (auto const column : named_) out.push_back(begins[column]);
    return out;
  }
  /// The number in the file, from 1, of the column that a row type has at `place`.
  [[nodiscard]] std::size_t number(std::size_t place) const noexcept {
    return 1 + (named_.empty() ? place : named_[place]);
  }
  [[nodiscard]] std::string const& path() const noexcept { return path_; }

  [[nodiscard]] CsvField field(std::size_t at) const {
    CsvField out;
    auto end = at;
    if (at < content_.size() && content_[at] == '"') {
      for (end = content_.find('"', at + 1);; end = content_.find('"', end + 2)) {
        if (end == std::string::npos) {
          fail(at, "a quoted field begins here and never ends: " + excerpt(std::string_view(content_).substr(at)) +
                       "; close the quote, and double the quotes inside");
        }
        if (end + 1 == content_.size() || content_[end + 1] != '"') break;
        out.doubled = true;
      }
      out.text = std::string_view(content_).substr(at + 1, end - at - 1);
      ++end;
    } else {
      while (end < content_.size() && content_[end] != separator_ && line_break(end) == 0) ++end;
      out.text = std::string_view(content_).substr(at, end - at);
    }
    if (end == content_.size()) {
      out.last = true;
      out.next = end;
    } else if (content_[end] == separator_) {
      out.next = end + 1;
    } else if (auto const skipped = line_break(end)) {
      out.last = true;
      out.next = end + skipped;
    } else {
      fail(end, "a quoted field ends and text follows: " + excerpt(std::string_view(content_).substr(end)) +
                    "; expected a separator or the end of the line; double the quotes inside a field");
    }
    return out;
  }

  /// @throws DataError "file:line: what"; lines are counted here only
  [[noreturn]] void fail(std::size_t at, std::string const& what) const {
    auto const line = 1 + std::count(content_.begin(), content_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw DataError(path_ + ":" + std::to_string(line) + ": " + what);
  }

 private:
  static std::string count(std::size_t n, std::string const& what) {
    return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
  }
  void find_rows(std::size_t columns, std::string const& which, std::string const& or_else) {
    bool more = true;
    while (more) {
      auto at = rows_.back();
      std::size_t found = 0;
      for (bool last = false; !last; ++found) {
        auto const f = field(at);
        at = f.next;
        last = f.last;
      }
      if (found != columns) {
        fail(rows_.back(), "has " + count(found, "column") + " where " + std::to_string(columns) + which +
                               " were expected; mend the line, quote fields that hold the separator" + or_else);
      }
      more = find_row(at);
    }
    content_hash_ = content_hash(content_);
  }
  /// Notes the row that begins at or after `at`, if there is one.
  bool find_row(std::size_t at) {
    while (at < content_.size()) {
      auto const skipped = line_break(at);
      if (skipped == 0) {
        rows_.push_back(at);
        return true;
      }
      at += skipped;
    }
    return false;
  }
  /// How many characters end the line here; 0 when it goes on.
  [[nodiscard]] std::size_t line_break(std::size_t at) const noexcept {
    if (content_[at] == '\n') return 1;
    if (content_[at] != '\r') return 0;
    return at + 1 < content_.size() && content_[at + 1] == '\n' ? 2 : 1;
  }

  std::string path_;
  char separator_;
  std::string content_;
  std::vector<std::size_t> rows_;
  std::vector<std::size_t> named_;  // the file's columns, from 0, in the order of the names
  std::uint64_t content_hash_ = 0;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data::detail
