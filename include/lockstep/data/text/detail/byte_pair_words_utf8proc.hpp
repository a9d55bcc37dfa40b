// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_UTF8PROC)
#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Splits a text into the words within which GPT-2 merges pairs. Words concatenate to the text: nothing is dropped. A
/// word is a contraction ("'s"), or a run of letters, of digits or of other characters, each with the blank before it.
/// White space before another word is a word, without its last character. A byte that is not UTF-8 is another
/// character. Characters that the installed utf8proc does not know yet are other characters.
/// @source Radford et al. 2019, GPT-2, and the pattern published with its code:
/// 's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
class BytePairWords {
 public:
  /// Calls `each(word)` for every word in order.
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    while (!text.empty()) {
      auto const bytes = first_word(text);
      each(text.substr(0, bytes));
      text.remove_prefix(bytes);
    }
  }

 private:
  enum class Kind { letter, digit, space, other };
  struct Character {
    Kind kind;
    std::size_t bytes;
  };

  static std::size_t first_word(std::string_view text) noexcept {
    for (std::string_view const ending : {"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"})
      if (text.starts_with(ending)) return ending.size();
    auto first = character(text);
    std::size_t end = 0;
    if (text[0] == ' ' && text.size() > 1)
      if (auto const second = character(text.substr(1)); second.kind != Kind::space) {
        first = second;
        end = 1;
      }
    std::size_t last = 0;  // bytes of the run's last character
    for (auto next = first; next.kind == first.kind; next = character(text.substr(end))) {
      last = next.bytes;
      end += last;
      if (end == text.size()) return end;
    }
    return first.kind == Kind::space && end > last ? end - last : end;
  }

  /// The first character of a text that is not empty.
  static Character character(std::string_view text) noexcept {
    auto const lead = static_cast<unsigned char>(text.front());
    if (lead < 0x80) return {ascii_kind(lead), 1};
    utf8proc_int32_t code = 0;
    auto const bytes = ::utf8proc_iterate(reinterpret_cast<utf8proc_uint8_t const*>(text.data()),
                                          static_cast<utf8proc_ssize_t>(std::min<std::size_t>(text.size(), 4)), &code);
    if (bytes <= 0) return {Kind::other, 1};
    return {kind_of(code), static_cast<std::size_t>(bytes)};
  }

  static constexpr Kind ascii_kind(unsigned char c) noexcept {
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::digit;
    return c == ' ' || (c >= '\t' && c <= '\r') ? Kind::space : Kind::other;
  }

  static Kind kind_of(utf8proc_int32_t code) noexcept {
    constexpr utf8proc_int32_t next_line = 0x85;
    if (code == next_line) return Kind::space;
    switch (::utf8proc_category(code)) {
      case UTF8PROC_CATEGORY_LU:
      case UTF8PROC_CATEGORY_LL:
      case UTF8PROC_CATEGORY_LT:
      case UTF8PROC_CATEGORY_LM:
      case UTF8PROC_CATEGORY_LO:
        return Kind::letter;
      case UTF8PROC_CATEGORY_ND:
      case UTF8PROC_CATEGORY_NL:
      case UTF8PROC_CATEGORY_NO:
        return Kind::digit;
      case UTF8PROC_CATEGORY_ZS:
      case UTF8PROC_CATEGORY_ZL:
      case UTF8PROC_CATEGORY_ZP:
        return Kind::space;
      default:
        return Kind::other;
    }
  }
};

}}}  // namespace lockstep::data::detail
#endif
