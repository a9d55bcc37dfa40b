// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/peer_text.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

LOCKSTEP_COLD_INLINE std::string peer_text(std::string_view text, std::size_t most) {
  constexpr char digits[] = "0123456789abcdef";
  bool const is_cut = text.size() > most;
  text = text.substr(0, most);
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    auto const length = utf8_length(text);
    auto const lead = static_cast<unsigned char>(text[0]);
    bool const is_c1 = length == 2 && lead == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0;
    if (length > 0 && lead >= 0x20 && lead != 0x7F && !is_c1) {
      out.append(text.substr(0, length));
    } else if (is_cut && length == 0 && text.size() < 4 && lead >= 0xC2) {
      break;  // a character that the limit cuts
    } else {
      for (char const byte : text.substr(0, std::max<std::size_t>(length, 1)))
        out.append({'\\', 'x', digits[static_cast<unsigned char>(byte) >> 4], digits[byte & 15]});
    }
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return is_cut ? out + "..." : out;
}

}}}  // namespace lockstep::launch
