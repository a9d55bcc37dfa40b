// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/utf8.hpp>
#include <lockstep/data/source/detail/csv_parts.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE CsvPartRows scan_csv_rows(std::string_view text, std::size_t first, char separator,
                                          std::size_t columns) {
  CsvPartRows out;
  out.first = first;
  for (auto at = first;;) {
    while (at < text.size() && csv_line_break(text, at) != 0) ++at;
    if (at >= text.size()) return out;
    auto const begin = at;
    std::size_t count = 0;
    auto end = CsvField::End::separator;
    for (; end == CsvField::End::separator; ++count) {
      auto const field = csv_field(text, at, separator);
      end = field.end;
      at = field.next;
    }
    if (end == CsvField::End::open_quote) {
      out.open = begin;
      return out;
    }
    if (end != CsvField::End::row || count != columns) {
      out.regular = false;
      return out;
    }
    out.begins.push_back(static_cast<std::uint32_t>(begin));
  }
}

LOCKSTEP_INLINE CsvPartRows scan_csv_rows_in_quotes(std::string_view text, char separator, std::size_t columns) {
  CsvPartRows out;
  out.first = text.size();
  auto end = text.find('"');
  while (end != std::string_view::npos && end + 1 < text.size() && text[end + 1] == '"') end = text.find('"', end + 2);
  if (end == std::string_view::npos) return out;
  auto at = end + 1;
  bool row_ends = at == text.size();
  if (!row_ends && text[at] == separator) {
    for (++at; !row_ends;) {
      auto const field = csv_field(text, at, separator);
      if (field.end == CsvField::End::stray_text) out.regular = false;
      if (field.end == CsvField::End::stray_text || field.end == CsvField::End::open_quote) return out;
      row_ends = field.end == CsvField::End::row;
      at = field.next;
    }
  } else if (!row_ends) {
    auto const skipped = csv_line_break(text, at);
    if (skipped == 0) out.regular = false;
    if (skipped == 0) return out;
    at += skipped;
  }
  return scan_csv_rows(text, at, separator, columns);
}

LOCKSTEP_INLINE std::optional<CsvIndex> CsvIndexer::find(ThreadPool& pool) {
  if (!cut_into_parts()) return {};
  std::vector<Scans> scans(parts_.size() - 1);
  if (progress_) progress_->begin("indexing " + file_.path(), static_cast<Index>(file_.size()));
  pool.run(static_cast<Index>(scans.size()), [&](Index part) {
    auto const k = static_cast<std::size_t>(part);
    thread_local std::string text;
    read(parts_[k], parts_[k + 1], text);
    if (text.find('\0') != std::string::npos || (k == 0 && has_many_controls(text)) ||
        (decoding_ == Decoding::check && utf8_prefix(text) < text.size()))
      irregular_ = true;
    if (irregular_) return;
    scans[k].at_row = scan_csv_rows(text, 0, separator_, columns_);
    if (k > 0) scans[k].in_quotes = scan_csv_rows_in_quotes(text, separator_, columns_);
    if (progress_) progress_->add(static_cast<Index>(text.size()));
  });
  if (irregular_ || file_.size_now() != file_.size()) return {};
  return join(scans);
}

LOCKSTEP_INLINE bool CsvIndexer::has_many_controls(std::string_view text) {
  auto const head = text.substr(0, look);
  return count_controls(head) * 20 > head.size();
}

LOCKSTEP_INLINE void CsvIndexer::read(std::size_t begin, std::size_t end, std::string& text) const {
  text.resize(end - begin);
  file_.read(begin, std::as_writable_bytes(std::span(text)));
}

LOCKSTEP_INLINE bool CsvIndexer::cut_into_parts() {
  auto const size = file_.size();
  std::string text;
  read(0, std::min<std::size_t>(3, size), text);
  parts_ = {text == "\xef\xbb\xbf" ? std::size_t{3} : 0};
  for (auto at = part_bytes_; at < size; at = std::max(at, parts_.back()) / part_bytes_ * part_bytes_ + part_bytes_) {
    for (auto from = at - 1; from < size; from += look) {
      read(from, std::min(from + look, size), text);
      auto const found = text.find('\n');
      if (found == std::string::npos) continue;
      if (from + found + 1 < size) parts_.push_back(from + found + 1);
      break;
    }
    if (parts_.back() < at) break;  // no further line feed
  }
  parts_.push_back(size);
  for (std::size_t k = 0; k + 1 < parts_.size(); ++k)
    if (parts_[k + 1] - parts_[k] > TextWindow::longest) return false;
  return parts_.back() > parts_.front();
}

LOCKSTEP_INLINE std::optional<std::size_t> CsvIndexer::end_of_row(std::size_t begin) const {
  auto const size = file_.size();
  std::string text;
  for (std::size_t window = 1 << 16; window <= 2 * TextWindow::longest; window *= 2) {
    read(begin, std::min(begin + window, size), text);
    bool const all = begin + text.size() == size;
    std::size_t at = 0, count = 0;
    auto end = CsvField::End::separator;
    for (; end == CsvField::End::separator; ++count) {
      auto const field = csv_field(text, at, separator_);
      end = field.end;
      at = field.next;
    }
    if (at == text.size() && !all) continue;  // the field may continue
    if (end != CsvField::End::row || count != columns_) return {};
    return begin + at;
  }
  return {};
}

LOCKSTEP_INLINE std::optional<CsvIndex> CsvIndexer::join(std::vector<Scans>& scans) const {
  CsvIndex out;
  std::size_t rows = 0;
  for (auto const& scan : scans) rows += std::max(scan.at_row.begins.size(), scan.in_quotes.begins.size());
  out.begins.reserve(rows + scans.size());
  std::size_t next = parts_.front();  // start of a row or of an empty line
  for (std::size_t k = 0; k < scans.size(); ++k) {
    auto const begin = parts_[k], end = parts_[k + 1];
    if (next >= end) continue;
    auto found = std::exchange(next == begin ? scans[k].at_row : scans[k].in_quotes, {});
    if (next != begin && (!found.regular || begin + found.first != next)) {
      std::string text;
      read(begin, end, text);
      found = scan_csv_rows(text, next - begin, separator_, columns_);
    }
    scans[k] = {};
    if (!found.regular) return {};
    for (auto const row : found.begins) out.begins.push_back(begin + row);
    next = end;
    if (!found.open) continue;
    out.begins.push_back(begin + *found.open);
    auto const row_ends = end_of_row(begin + *found.open);
    if (!row_ends) return {};
    next = *row_ends;
  }
  if (out.begins.empty()) return {};
  auto const end = end_of_row(out.begins.back());
  if (!end) return {};
  out.end = *end;
  return out;
}

}}}  // namespace lockstep::data::detail
