// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/source/detail/csv_field.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE void CsvField::copy_to(std::string& out) const {
  if (!doubled) {
    out.assign(text);
    return;
  }
  out.clear();
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); i += text[i] == '"' ? 2u : 1u) out += text[i];
}

LOCKSTEP_INLINE std::size_t csv_line_break(std::string_view text, std::size_t at) noexcept {
  if (text[at] == '\n') return 1;
  if (text[at] != '\r') return 0;
  return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
}

LOCKSTEP_INLINE CsvField csv_field(std::string_view text, std::size_t at, char separator) noexcept {
  bool const blanks = separator == ' ';
  auto const skip_blanks = [&](std::size_t& from) {
    while (from < text.size() && (text[from] == ' ' || text[from] == '\t')) ++from;
  };
  if (blanks) skip_blanks(at);
  CsvField out;
  out.begin = at;
  auto end = at;
  if (at < text.size() && text[at] == '"') {
    for (end = text.find('"', at + 1);; end = text.find('"', end + 2)) {
      if (end == std::string_view::npos) return {text.substr(at), false, CsvField::End::open_quote, at, text.size()};
      if (end + 1 == text.size() || text[end + 1] != '"') break;
      out.doubled = true;
    }
    out.text = text.substr(at + 1, end - at - 1);
    ++end;
  } else {
    auto const find_end = [&](auto const& ends_field) {
      while (end < text.size() && !ends_field(text[end]) && csv_line_break(text, end) == 0) ++end;
    };
    if (blanks)
      find_end([](char c) { return c == ' ' || c == '\t'; });
    else
      find_end([=](char c) { return c == separator; });
    out.text = text.substr(at, end - at);
  }
  auto const field_end = end;
  if (blanks) skip_blanks(end);
  if (end == text.size()) {
    out.next = end;
  } else if (auto const skipped = csv_line_break(text, end)) {
    out.next = end + skipped;
  } else if (blanks ? end > field_end : text[end] == separator) {
    out.end = CsvField::End::separator;
    out.next = blanks ? end : end + 1;
  } else {
    out.end = CsvField::End::stray_text;
    out.next = end;
  }
  return out;
}

}}}  // namespace lockstep::data::detail
