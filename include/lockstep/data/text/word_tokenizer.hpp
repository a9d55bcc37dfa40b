// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::data {

/// Cuts a text into lower-case words (runs of ASCII letters and digits and of all bytes beyond ASCII) and single
/// punctuation marks; white space parts and is dropped. Words beyond 64 bytes are cut. Locale-independent.
struct WordTokenizer {
  /// Calls `each(token)` for every token in order; the token lives during the call.
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    std::array<char, 64> word;
    std::size_t length = 0;
    auto const flush = [&] {
      if (length > 0) each(std::string_view(word.data(), length));
      length = 0;
    };
    for (char const& c : text) {
      if (is_word(c)) {
        if (length == word.size()) flush();
        word[length++] = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
      } else {
        flush();
        if (static_cast<unsigned char>(c) > 0x20 && c != 0x7f) each(std::string_view(&c, 1));
      }
    }
    flush();
  }

 private:
  static bool is_word(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           static_cast<unsigned char>(c) >= 0x80;
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::data
