// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// One field of a CSV file, unconverted.
struct CsvField {
  enum class End {
    separator,   // another field follows
    row,         // last field of its row
    open_quote,  // the text ends within quotes
    stray_text,  // text follows the closing quote, at `next`
  };

  std::string_view text;  // without the enclosing quotes
  bool doubled = false;   // holds doubled quotes, each of which means one quote
  End end = End::row;
  std::size_t begin = 0, next = 0;  // start of the field, and of the next field or row

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

/// Returns the number of characters of the line end at `at`; 0 if the line does not end there.
[[nodiscard]] inline std::size_t csv_line_break(std::string_view text, std::size_t at) noexcept {
  if (text[at] == '\n') return 1;
  if (text[at] != '\r') return 0;
  return at + 1 < text.size() && text[at + 1] == '\n' ? 2 : 1;
}

/// Returns the field that begins at `at`. @source RFC 4180
[[nodiscard]] inline CsvField csv_field(std::string_view text, std::size_t at, char separator) noexcept {
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
    while (end < text.size() && text[end] != separator && csv_line_break(text, end) == 0) ++end;
    out.text = text.substr(at, end - at);
  }
  if (end == text.size()) {
    out.next = end;
  } else if (text[end] == separator) {
    out.end = CsvField::End::separator;
    out.next = end + 1;
  } else if (auto const skipped = csv_line_break(text, end)) {
    out.next = end + skipped;
  } else {
    out.end = CsvField::End::stray_text;
    out.next = end;
  }
  return out;
}

}}}  // namespace lockstep::data::detail
