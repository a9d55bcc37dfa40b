// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/detail/csv_quoted.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::string csv_quoted(std::string const& text) {
  std::string out = "\"";
  for (char const c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

LOCKSTEP_INLINE std::string csv_cell(std::string const& text) {
  return text.find_first_of(",\"\r\n") == std::string::npos ? text : csv_quoted(text);
}

}}}  // namespace lockstep::train::detail
