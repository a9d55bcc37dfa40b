// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <string_view>

#include <lockstep/core/version.hpp>
#include <lockstep/data/text/detail/word_block.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Splits a text into lower-case words and single punctuation marks. Words are runs of ASCII letters, digits, and all
/// bytes beyond ASCII. White space separates tokens and is dropped. Splits words beyond 64 bytes, between the
/// characters of UTF-8. Locale-independent.
struct WordTokenizer {
  /// Calls `each(token)` for every token in order. The token is a std::string_view, valid during the call. If a
  /// function hands it on unchanged (`auto token`), a TokenCache reads short tokens faster.
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    detail::WordBlock block;
    while (!text.empty()) {
      auto const size = std::min(text.size(), detail::WordBlock::bytes);
      block.load(text.substr(0, size));
      text.remove_prefix(split(block, size, text, each));
    }
  }

 private:
  static constexpr std::size_t longest = 64;

  /// Splits the first `size` bytes of the text. Returns their number, without a word at their end that may continue.
  template <class Each>
  static std::size_t split(detail::WordBlock const& block, std::size_t size, std::string_view text, Each& each) {
    for (std::size_t group = 0; group < block.groups(); ++group) {
      for (auto tokens = block.tokens(group); tokens != 0; tokens &= tokens - 1) {
        auto place = 64 * group + static_cast<std::size_t>(std::countr_zero(tokens));
        auto word = block.word_bytes(place);
        if (word == 0) {
          each(block.lower(place, 1));
          continue;
        }
        for (;;) {
          if (place + word >= size && size < text.size()) return place;
          if (word < longest) break;
          auto const next = place + longest;
          word -= next < size ? begun_character(block.lower(place, longest), text[next]) : 0;
          each(block.lower(place, word));
          place += word;
          word = block.word_bytes(place);
        }
        if (word > 0) each(block.lower(place, word));
      }
    }
    return size;
  }
  /// Returns the number of bytes at the end of a full word that begin a UTF-8 character which `next` continues.
  static std::size_t begun_character(std::string_view word, char next) noexcept {
    auto const is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    if (!is_continuation(next)) return 0;
    for (std::size_t count = 1; count <= 3; ++count) {
      auto const c = word[word.size() - count];
      if (static_cast<unsigned char>(c) >= 0xc0) return count;
      if (!is_continuation(c)) break;
    }
    return 0;
  }
};

}}}  // namespace lockstep::data
