// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/train/metrics/detail/split_words.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace train::detail {

LOCKSTEP_INLINE std::size_t character_bytes(std::string_view text) noexcept {
  auto const lead = static_cast<unsigned char>(text.front());
  std::size_t const length = lead < 0xC2 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 1;
  return std::min(length, text.size());
}

LOCKSTEP_INLINE bool is_space(std::string_view character) noexcept {
  if (character.size() == 1) {
    auto const byte = static_cast<unsigned char>(character[0]);
    return (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x20);
  }
  if (character == "\xC2\x85" || character == "\xC2\xA0") return true;  // U+0085, U+00A0
  if (character.size() != 3) return false;
  static constexpr std::array<std::string_view, 6> others{"\xE1\x9A\x80", "\xE2\x80\xA8", "\xE2\x80\xA9",
                                                          "\xE2\x80\xAF", "\xE2\x81\x9F", "\xE3\x80\x80"};
  return std::find(others.begin(), others.end(), character) != others.end() ||
         (character.starts_with("\xE2\x80") && static_cast<unsigned char>(character[2]) <= 0x8A);  // U+2000 to U+200A
}

LOCKSTEP_INLINE std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  std::size_t begin = 0, at = 0;
  while (at < text.size()) {
    auto const length = character_bytes(text.substr(at));
    if (is_space(text.substr(at, length))) {
      if (at > begin) words.push_back(text.substr(begin, at - begin));
      begin = at + length;
    }
    at += length;
  }
  if (begin < text.size()) words.push_back(text.substr(begin));
  return words;
}

}}}  // namespace lockstep::train::detail
