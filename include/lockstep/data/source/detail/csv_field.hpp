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

  void copy_to(std::string& out) const;
};

/// Returns the number of characters of the line end at `at`; 0 if the line does not end there.
[[nodiscard]] std::size_t csv_line_break(std::string_view text, std::size_t at) noexcept;

/// Returns the field that begins at `at`. If the separator is a blank, blanks and tabs together are one separator, and
/// those at the ends of a line are none. @source RFC 4180
[[nodiscard]] CsvField csv_field(std::string_view text, std::size_t at, char separator) noexcept;

}}}  // namespace lockstep::data::detail

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/source/detail/csv_field.ipp>
#endif
