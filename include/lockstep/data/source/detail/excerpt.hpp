// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Returns text from a file in a form for messages: quoted, short, printable.
inline std::string excerpt(std::string_view text) {
  constexpr std::size_t longest = 40;
  std::string out = "\"";
  for (char c : text.substr(0, longest)) {
    out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return out + (text.size() > longest ? "...\"" : "\"");
}

}}}  // namespace lockstep::data::detail
