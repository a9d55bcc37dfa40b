// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/data/source/detail/csv_table.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE CsvField CsvRow::next() {
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

LOCKSTEP_INLINE void CsvRow::expect_end() const {
  if (!over_) changed();
}

LOCKSTEP_INLINE void CsvRow::changed() const {
  fail(0,
       "has another number of columns than when it was indexed; leave the file alone while training, and open it "
       "again");
}

LOCKSTEP_INLINE std::vector<std::string> texts_of(CsvRow row) {
  std::vector<std::string> out;
  while (!row.over()) row.next().copy_to(out.emplace_back());
  return out;
}

LOCKSTEP_INLINE CsvTable::CsvTable(CsvSource source)
    : file_(std::move(source.path), source.encoding), separator_(source.separator), comment_(source.comment) {
  auto window = file_.window();
  if (find_row(window)) end_ = begins_[0] + measure(window).bytes;
}

LOCKSTEP_INLINE CsvTable::CsvTable(CsvSource source, std::uint64_t max_held_bytes, CsvThreads threads,
                                   std::size_t columns, std::string const& kinds)
    : file_(std::move(source.path), max_held_bytes, source.encoding),
      separator_(source.separator),
      comment_(source.comment) {
  with_memory_for(this->path() + " (its rows)", file_.size(), [&] {
    if (find_rows_by_parts(threads, columns)) return;
    auto window = file_.window();
    find_rows(window, columns, " (" + kinds + ")", ", or change the row type");
  });
}

LOCKSTEP_INLINE CsvTable::CsvTable(CsvSource source, std::uint64_t max_held_bytes, CsvThreads threads,
                                   std::vector<std::string> const& names)
    : file_(std::move(source.path), max_held_bytes, source.encoding),
      separator_(source.separator),
      comment_(source.comment) {
  auto window = file_.window();
  find_row(window);
  measure(window);
  auto const header = texts_of({file_, window.text(), begins_[0], separator_});
  for (auto const& name : names) {
    auto const found = std::find(header.begin(), header.end(), name);
    if (found == header.end() || std::find(found + 1, header.end(), name) != header.end()) {
      constexpr std::size_t most = 20;
      std::string has;
      for (std::size_t i = 0; i < std::min(most, header.size()); ++i) has += (i == 0 ? "" : ", ") + excerpt(header[i]);
      if (header.size() > most) has += " and " + count(header.size() - most, "other column");
      fail(0, (found == header.end() ? "no column is named " : "two columns are named ") + excerpt(name) +
                  "; the first line has " + has + "; correct the name in CsvOptions::columns or in the file");
    }
    named_.push_back(static_cast<std::size_t>(found - header.begin()));
  }
  begins_.clear();
  with_memory_for(this->path() + " (its rows)", file_.size(), [&] {
    if (!find_rows_by_parts(threads, header.size())) find_rows(window, header.size(), ", as the first line has,", "");
  });
  drop_first_row();
}

LOCKSTEP_INLINE CsvRow CsvTable::row(Index i) const {
  auto const place = static_cast<std::size_t>(i);
  auto const begin = begins_[place], end = place + 1 < begins_.size() ? begins_[place + 1] : end_;
  return {file_, file_.read(begin, end), begin, separator_};
}

LOCKSTEP_INLINE void CsvTable::fail(Index i, std::string const& why) const {
  file_.fail(begins_[static_cast<std::size_t>(i)], why);
}

LOCKSTEP_INLINE std::vector<CsvField> CsvTable::named(CsvRow& row) const {
  std::vector<CsvField> fields, out;
  if (named_.empty()) return out;
  fields.reserve(columns_);
  for (std::size_t column = 0; column < columns_; ++column) fields.push_back(row.next());
  for (auto const column : named_) out.push_back(fields[column]);
  return out;
}

LOCKSTEP_INLINE std::size_t CsvTable::number(std::size_t place) const noexcept {
  return 1 + (named_.empty() ? place : named_[place]);
}

LOCKSTEP_INLINE bool CsvTable::find_rows_by_parts(CsvThreads const& threads, std::size_t columns) {
  if ((threads.count <= 1 && !threads.progress) || comment_ != '\0') return false;  // a comment may hold a quote
  ThreadPool pool(threads.count);
  auto found =
      CsvIndexer(file_.file(), separator_, columns, threads.progress, file_.checks() ? Decoding::check : Decoding::none)
          .find(pool);
  if (!found) return false;
  file_.hold_without_window();
  begins_ = std::move(found->begins);
  end_ = found->end;
  columns_ = columns;
  return true;
}

LOCKSTEP_INLINE std::string CsvTable::count(std::size_t n, std::string const& what) {
  return std::to_string(n) + " " + what + (n == 1 ? "" : "s");
}

LOCKSTEP_INLINE void CsvTable::find_rows(TextWindow& window, std::size_t columns, std::string const& which,
                                         std::string const& or_else) {
  columns_ = columns;
  while (find_row(window)) {
    auto const row = measure(window);
    if (row.columns != columns)
      fail(rows() - 1, "has " + count(row.columns, "column") + ", but " + std::to_string(columns) + which +
                           " were expected; correct the line, quote fields that hold the separator" + or_else +
                           CsvRow(file_, window.text(), begins_.back(), separator_).comment_remedy());
    end_ = begins_.back() + row.bytes;
    window.drop(row.bytes);
  }
  begins_.shrink_to_fit();
}

LOCKSTEP_INLINE bool CsvTable::find_row(TextWindow& window) {
  for (;;) {
    auto const text = window.text();
    std::size_t empty = 0;
    while (empty < text.size() && csv_line_break(text, empty) != 0) ++empty;
    window.drop(empty);
    if (empty < text.size() && comment_ != '\0' && window.text()[0] == comment_) {
      drop_comment(window);
      continue;
    }
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

LOCKSTEP_INLINE void CsvTable::drop_comment(TextWindow& window) {
  for (;; file_.grow(window)) {
    auto const text = window.text();
    auto const end = text.find_first_of("\r\n");
    if (end != std::string_view::npos || window.ended()) return window.drop(std::min(end, text.size()));
  }
}

LOCKSTEP_INLINE CsvTable::Measured CsvTable::measure(TextWindow& window) {
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

}}}  // namespace lockstep::data::detail
