// SPDX-License-Identifier: Apache-2.0
#pragma once
#if defined(LOCKSTEP_UTF8PROC)
#include <utf8proc.h>

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

/// Splits a text into words as BERT does before it looks for pieces. Splits at white space, which is dropped, and
/// around each punctuation mark and each ideograph, which are words of one character. Drops control characters,
/// private-use characters, and bytes that are not UTF-8. Keeps unassigned characters as letters, because a later
/// Unicode version may assign them. In lower case, also drops accents.
/// @source Devlin et al. 2019, BERT, and the rules published with its code
class BasicTokenizer {
 public:
  explicit BasicTokenizer(bool lower_case) noexcept : lower_case_(lower_case) {}

  /// Calls `each(word, characters)` for every word in order, until one call returns false.
  template <class Each>
  void operator()(std::string_view text, Each&& each) const {
    std::string word;
    std::size_t characters = 0;
    auto const flush = [&] {
      bool const more = characters == 0 || each(std::string_view(word), characters);
      word.clear();
      characters = 0;
      return more;
    };
    auto const add = [&](utf8proc_int32_t character) {
      bool const alone = is_punctuation(character);
      if (alone && !flush()) return false;
      append(word, character);
      ++characters;
      return !alone || flush();
    };
    while (!text.empty()) {
      auto const character = next(text);
      auto const kind = kind_of(character);
      if (kind == Kind::dropped) continue;
      if (kind != Kind::letter && !flush()) return;
      if (kind == Kind::space) continue;
      if (!each_normalized(character, add)) return;
      if (kind == Kind::ideograph && !flush()) return;
    }
    flush();
  }

 private:
  enum class Kind { letter, space, ideograph, dropped };

  /// Removes and returns the first character; each byte that is not UTF-8 gives U+FFFD.
  static utf8proc_int32_t next(std::string_view& text) noexcept {
    auto const lead = static_cast<unsigned char>(text.front());
    utf8proc_int32_t character = lead;
    utf8proc_ssize_t bytes = 1;
    if (lead >= 0x80) {
      bytes = ::utf8proc_iterate(reinterpret_cast<utf8proc_uint8_t const*>(text.data()),
                                 static_cast<utf8proc_ssize_t>(text.size()), &character);
      if (bytes <= 0) {
        bytes = 1;
        character = 0xfffd;
      }
    }
    text.remove_prefix(static_cast<std::size_t>(bytes));
    return character;
  }

  static Kind kind_of(utf8proc_int32_t c) noexcept {
    if (c > 0x20 && c < 0x7f) return Kind::letter;
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') return Kind::space;
    if (c == 0xfffd) return Kind::dropped;
    switch (::utf8proc_category(c)) {
      case UTF8PROC_CATEGORY_ZS:
      case UTF8PROC_CATEGORY_ZL:
      case UTF8PROC_CATEGORY_ZP:
        return Kind::space;
      case UTF8PROC_CATEGORY_CC:
      case UTF8PROC_CATEGORY_CF:
      case UTF8PROC_CATEGORY_CS:
      case UTF8PROC_CATEGORY_CO:
        return Kind::dropped;
      default:
        return is_ideograph(c) ? Kind::ideograph : Kind::letter;
    }
  }

  static bool is_ideograph(utf8proc_int32_t c) noexcept {
    struct Range {
      utf8proc_int32_t first, last;
    };
    static constexpr std::array<Range, 8> ranges{{{0x4e00, 0x9fff},
                                                  {0x3400, 0x4dbf},
                                                  {0x20000, 0x2a6df},
                                                  {0x2a700, 0x2b73f},
                                                  {0x2b740, 0x2b81f},
                                                  {0x2b920, 0x2ceaf},
                                                  {0xf900, 0xfaff},
                                                  {0x2f800, 0x2fa1f}}};
    for (auto const& range : ranges)
      if (c >= range.first && c <= range.last) return true;
    return false;
  }

  // In ASCII, all characters except letters and digits count, including those that Unicode calls symbols.
  static bool is_punctuation(utf8proc_int32_t c) noexcept {
    if (c < 0x80) return !(c >= '0' && c <= '9') && !((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
    auto const category = ::utf8proc_category(c);
    return category >= UTF8PROC_CATEGORY_PC && category <= UTF8PROC_CATEGORY_PO;
  }

  template <class Add>
  bool each_normalized(utf8proc_int32_t c, Add const& add) const {
    if (!lower_case_) return add(c);
    if (c < 0x80) return add(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    std::array<utf8proc_int32_t, 32> parts;
    int last = 0;
    auto const count =
        ::utf8proc_decompose_char(c, parts.data(), static_cast<utf8proc_ssize_t>(parts.size()),
                                  static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE | UTF8PROC_STABLE), &last);
    for (utf8proc_ssize_t i = 0; i < count; ++i) {
      auto const part = parts[static_cast<std::size_t>(i)];
      if (::utf8proc_category(part) != UTF8PROC_CATEGORY_MN && !add(::utf8proc_tolower(part))) return false;
    }
    return true;
  }

  static void append(std::string& word, utf8proc_int32_t c) {
    if (c < 0x80) {
      word += static_cast<char>(c);
      return;
    }
    std::array<utf8proc_uint8_t, 4> bytes;
    auto const count = ::utf8proc_encode_char(c, bytes.data());
    word.append(reinterpret_cast<char const*>(bytes.data()), static_cast<std::size_t>(count));
  }

  bool lower_case_;
};

}}}  // namespace lockstep::data::detail
#endif
