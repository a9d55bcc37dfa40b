// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI {

/// Returns the bytes of the first character of `text`, or 0 if it is not UTF-8: cut short, over-long, a surrogate, or
/// beyond U+10FFFF.
[[nodiscard]] constexpr std::size_t utf8_length(std::string_view text) noexcept {
  if (text.empty()) return 0;
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto const lead = byte(0);
  if (lead < 0x80) return 1;
  std::size_t const length = lead >= 0xC2 && lead < 0xE0   ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i)
    if ((byte(i) & 0xC0) != 0x80) return 0;
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) >= 0xA0) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) >= 0x90) return 0;
  return length;
}

/// Whether `text` is the beginning of one character of UTF-8, without its end.
[[nodiscard]] constexpr bool utf8_begins(std::string_view text) noexcept {
  if (text.empty() || text.size() > 3 || utf8_length(text) > 0) return false;
  auto const byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  auto const lead = byte(0);
  if (lead < 0xC2 || lead > 0xF4 || text.size() >= (lead < 0xE0 ? 2u : lead < 0xF0 ? 3u : 4u)) return false;
  for (std::size_t i = 1; i < text.size(); ++i)
    if ((byte(i) & 0xC0) != 0x80) return false;
  if (text.size() == 1) return true;
  return !(lead == 0xE0 && byte(1) < 0xA0) && !(lead == 0xED && byte(1) >= 0xA0) && !(lead == 0xF0 && byte(1) < 0x90) &&
         !(lead == 0xF4 && byte(1) >= 0x90);
}

/// Returns the number of bytes at the beginning of `text` that are whole characters of UTF-8. Reads ASCII at the speed
/// of memory.
[[nodiscard]] inline std::size_t utf8_prefix(std::string_view text) noexcept {
  std::size_t at = 0;
  for (;;) {
    for (std::uint64_t eight = 0; at + sizeof eight <= text.size(); at += sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080) != 0) break;
    }
    auto const length = utf8_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
}

/// Appends one code point, which must be valid.
inline void append_utf8(std::string& out, std::uint32_t code) {
  auto const put = [&](std::uint32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | code >> 6);
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

}}  // namespace lockstep
