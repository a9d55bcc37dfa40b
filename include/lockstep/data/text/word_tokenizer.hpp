// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Splits a text into lower-case words and single punctuation marks. Words are runs of ASCII letters, digits, and all
/// bytes beyond ASCII. White space separates tokens and is dropped. Splits words beyond 64 bytes, between the
/// characters of UTF-8. Locale-independent.
struct WordTokenizer {
  /// Calls `each(token)` for every token in order; the token is valid during the call.
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    std::array<char, 64> word;
    auto const* at = text.data();
    auto const* const end = at + text.size();
    while (at != end) {
      auto lower = lower_of(*at);
      if (lower == 0) {
        if (static_cast<unsigned char>(*at) > 0x20 && *at != 0x7f) each(std::string_view(at, 1));
        ++at;
        continue;
      }
      auto* out = word.data();
      auto const* const stop = at + std::min<std::ptrdiff_t>(end - at, std::ssize(word));
      do {
        *out++ = lower;
        ++at;
      } while (at != stop && (lower = lower_of(*at)) != 0);
      if (at != end && out == word.data() + word.size()) {  // a character that does not fit belongs to the next word
        auto const begun = begun_character(word, *at);
        at -= begun;
        out -= begun;
      }
      each(std::string_view(word.data(), static_cast<std::size_t>(out - word.data())));
    }
  }

 private:
  /// Returns the number of bytes at the end of a full word that begin a UTF-8 character which `next` continues.
  static std::ptrdiff_t begun_character(std::array<char, 64> const& word, char next) noexcept {
    auto const is_continuation = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    if (!is_continuation(next)) return 0;
    for (std::size_t count = 1; count <= 3; ++count) {
      auto const c = word[word.size() - count];
      if (static_cast<unsigned char>(c) >= 0xc0) return static_cast<std::ptrdiff_t>(count);
      if (!is_continuation(c)) break;
    }
    return 0;
  }
  /// Returns the byte in lower case; 0 if it is not part of a word.
  static char lower_of(char c) noexcept { return lower_case[static_cast<unsigned char>(c)]; }
  static constexpr std::array<char, 256> lower_case = [] {
    std::array<char, 256> out{};
    for (int c = 0; c < 256; ++c) {
      bool const upper = c >= 'A' && c <= 'Z';
      bool const part = upper || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c >= 0x80;
      out[static_cast<std::size_t>(c)] = static_cast<char>(!part ? 0 : upper ? c - 'A' + 'a' : c);
    }
    return out;
  }();
};

}}}  // namespace lockstep::data
