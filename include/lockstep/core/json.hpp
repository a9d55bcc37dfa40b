// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/detail/utf8.hpp>
#include <lockstep/core/json_value.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/parse_real.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {
namespace detail {

class Parser {
 public:
  Parser(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Value document() {
    auto value = this->value();
    space();
    if (at_ < text_.size()) fail("the value has ended, and there is " + found() + " after it");
    return value;
  }

 private:
  static constexpr int deepest = 256;  // the parser recurses: hostile input must not exhaust the stack

  Value value() {
    space();
    if (++depth_ > deepest) fail("arrays and objects are nested more than " + std::to_string(deepest) + " deep");
    auto out = [&]() -> Value {
      switch (peek()) {
        case '{':
          return object();
        case '[':
          return array();
        case '"':
          return string();
        case 't':
          return word("true", true);
        case 'f':
          return word("false", false);
        case 'n':
          return word("null", nullptr);
        default:
          return number();
      }
    }();
    --depth_;
    return out;
  }

  Value object() {
    Object out;
    std::vector<std::size_t> starts;
    ++at_;
    space();
    if (accept('}')) return out;
    do {
      space();
      if (peek() != '"') fail("a member's name in quotes is needed, not " + found());
      starts.push_back(at_);
      auto name = string();
      space();
      if (!accept(':')) fail("a ':' is needed after a member's name, not " + found());
      out.emplace_back(std::move(name), value());
      space();
    } while (accept(','));
    if (!accept('}')) fail("a ',' or '}' is needed after a member, not " + found());
    refuse_twice(out, starts);
    return out;
  }
  void refuse_twice(Object const& members, std::vector<std::size_t> const& starts) {
    auto const name_of = [&](std::size_t i) -> std::string_view { return members[i].first; };
    NameTable known;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (known.add(name_of) == NameTable::none) continue;
      at_ = starts[i];
      fail("the member \"" + members[i].first + "\" appears twice");
    }
  }

  Value array() {
    Array out;
    ++at_;
    space();
    if (accept(']')) return out;
    do {
      out.push_back(value());
      space();
    } while (accept(','));
    if (!accept(']')) fail("a ',' or ']' is needed after an element, not " + found());
    return out;
  }

  std::string string() {
    std::string out;
    for (++at_;;) {
      if (at_ == text_.size()) fail("the text ends inside a string");
      char const c = text_[at_];
      if (static_cast<unsigned char>(c) < 0x20) fail("a string holds the control character " + found() + "; escape it");
      if (accept('"')) return out;
      if (accept('\\')) {
        escape(out);
        continue;
      }
      auto const length = lockstep::detail::utf8_length(text_.substr(at_));
      if (length == 0) fail("a string holds bytes that are not UTF-8");
      out += text_.substr(at_, length);
      at_ += length;
    }
  }

  void escape(std::string& out) {
    constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
    if (auto const known = letters.find(peek()); known != std::string_view::npos) {
      out += meanings[known];
      ++at_;
      return;
    }
    if (!accept('u')) fail("a '\\' is followed by " + found() + "; only \" \\ / b f n r t and u may");
    auto code = hexadecimal();
    if (code >= 0xDC00 && code < 0xE000) fail("the second half of a surrogate pair comes without the first");
    if (code >= 0xD800 && code < 0xDC00) {
      auto const low = accept('\\') && accept('u') ? hexadecimal() : 0;
      if (low < 0xDC00 || low >= 0xE000) fail("the first half of a surrogate pair comes without the second");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    lockstep::detail::append_utf8(out, code);
  }

  std::uint32_t hexadecimal() {
    std::uint32_t code = 0;
    auto const* begin = text_.data() + at_;
    auto const four = text_.size() - at_ >= 4;
    if (!four || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
      fail("a \\u is not followed by four hexadecimal digits");
    at_ += 4;
    return code;
  }

  Value number() {
    auto const start = at_;
    accept('-');
    if (!digit(peek())) {
      at_ = start;
      fail("a value is needed, not " + found());
    }
    if (accept('0')) {
      if (digit(peek())) fail("a number begins with a needless 0");
    }
    digits();
    bool whole = true;
    if (accept('.')) {
      whole = false;
      if (!digit(peek())) fail("a digit is needed after the '.', not " + found());
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (!digit(peek())) fail("a digit is needed in the exponent, not " + found());
      digits();
    }
    auto const number = text_.substr(start, at_ - start);
    return whole ? converted<std::int64_t>(number, start, "a signed 64-bit integer")
                 : converted<double>(number, start, "a double");
  }

  template <class T>
  Value converted(std::string_view number, std::size_t start, char const* what) {
    T out{};
    auto const *const begin = number.data(), *const end = begin + number.size();
    auto const read = [&] {
      if constexpr (std::is_floating_point_v<T>)
        return lockstep::parse_real(begin, end, out);
      else
        return std::from_chars(begin, end, out);
    }();
    if (read.ec != std::errc()) {
      at_ = start;
      fail(std::string(number.substr(0, 40)) + " is beyond the range of " + what);
    }
    return out;
  }

  Value word(std::string_view word, Value value) {
    if (text_.substr(at_, word.size()) != word) fail("a value is needed, not " + found());
    at_ += word.size();
    return value;
  }

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  void digits() {
    while (digit(peek())) ++at_;
  }
  void space() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
  }
  /// Returns '\0' at the end, which no rule accepts.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  std::string found() const {
    if (at_ == text_.size()) return "the end of the text";
    auto const c = static_cast<unsigned char>(text_[at_]);
    if (c < 0x20 || c == 0x7F) return "byte " + std::to_string(c);
    auto const length = lockstep::detail::utf8_length(text_.substr(at_));
    if (length == 0) return "byte " + std::to_string(c);
    return "'" + std::string(text_.substr(at_, length)) + "'";
  }

  [[noreturn]] void fail(std::string const& what) const {
    std::size_t line = 1, column = 1;
    for (char c : text_.substr(0, at_)) {
      bool const continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // columns count characters
      column = c == '\n' ? 1 : continues ? column : column + 1;
      line += c == '\n';
    }
    throw DataError(std::string(name_) + ": line " + std::to_string(line) + ", column " + std::to_string(column) +
                    ": " + what);
  }

  std::string_view text_, name_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

}  // namespace detail

/// Parses one JSON text (RFC 8259) strictly: only white space around the value, no comments, no trailing commas, and
/// unique names. Strings must be UTF-8, integers must fit 64 bits and numbers a double; at most 256 levels are allowed.
/// @param name the file's name, for messages
/// @throws DataError with name, line and column
[[nodiscard]] inline Value parse(std::string_view text, std::string_view name = "json") {
  return detail::Parser(text, name).document();
}

}}}  // namespace lockstep::json
