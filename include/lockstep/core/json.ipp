// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/parse_real.hpp>
#include <lockstep/core/utf8.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json::detail {

class Parser {
 public:
  Parser(std::string_view text, std::string_view name, LoneSurrogates lone) : text_(text), name_(name), lone_(lone) {}

  Value document();

 private:
  static constexpr int deepest = 256;  // the parser recurses: hostile input must not exhaust the stack

  Value value();

  Value object();
  void refuse_twice(Object const& members, std::vector<std::size_t> const& starts);

  Value array();

  std::string string();

  void escape(std::string& out);

  std::uint32_t hexadecimal();

  Value number();

  template <class Number>
  Value converted(std::string_view number, std::size_t start, char const* what) {
    Number out{};
    auto const *const begin = number.data(), *const end = begin + number.size();
    auto const read = [&] {
      if constexpr (std::is_floating_point_v<Number>)
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

  Value word(std::string_view word, Value value);

  static bool digit(char c) { return c >= '0' && c <= '9'; }
  void digits();
  void space();
  /// Returns '\0' at the end, which no rule accepts.
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool accept(char c);

  std::string found() const;

  [[noreturn]] void fail(std::string const& what) const;

  std::string_view text_, name_;
  LoneSurrogates lone_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

LOCKSTEP_INLINE Value Parser::document() {
  auto value = this->value();
  space();
  if (at_ < text_.size()) fail("the value has ended, and there is " + found() + " after it");
  return value;
}

LOCKSTEP_INLINE Value Parser::value() {
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

LOCKSTEP_INLINE Value Parser::object() {
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

LOCKSTEP_COLD_INLINE void Parser::refuse_twice(Object const& members, std::vector<std::size_t> const& starts) {
  auto const name_of = [&](std::size_t i) -> std::string_view { return members[i].first; };
  NameTable known;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (known.add(name_of) == NameTable::none) continue;
    at_ = starts[i];
    fail("the member \"" + members[i].first + "\" appears twice");
  }
}

LOCKSTEP_INLINE Value Parser::array() {
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

LOCKSTEP_INLINE std::string Parser::string() {
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
    auto const length = utf8_length(text_.substr(at_));
    if (length == 0) fail("a string holds bytes that are not UTF-8");
    out += text_.substr(at_, length);
    at_ += length;
  }
}

LOCKSTEP_INLINE void Parser::escape(std::string& out) {
  constexpr std::string_view letters = "\"\\/bfnrt", meanings = "\"\\/\b\f\n\r\t";
  if (auto const known = letters.find(peek()); known != std::string_view::npos) {
    out += meanings[known];
    ++at_;
    return;
  }
  if (!accept('u')) fail("a '\\' is followed by " + found() + "; only \" \\ / b f n r t and u may");
  auto code = hexadecimal();
  constexpr std::uint32_t replacement = 0xFFFD;
  if (code >= 0xDC00 && code < 0xE000) {
    if (lone_ == LoneSurrogates::refuse) fail("the second half of a surrogate pair comes without the first");
    code = replacement;
  } else if (code >= 0xD800 && code < 0xDC00) {
    auto const after_first = at_;
    auto const low = accept('\\') && accept('u') ? hexadecimal() : 0;
    if (low >= 0xDC00 && low < 0xE000) {
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    } else {
      if (lone_ == LoneSurrogates::refuse) fail("the first half of a surrogate pair comes without the second");
      code = replacement;
      at_ = after_first;  // what follows is read by itself
    }
  }
  append_utf8(out, code);
}

LOCKSTEP_INLINE std::uint32_t Parser::hexadecimal() {
  std::uint32_t code = 0;
  auto const* begin = text_.data() + at_;
  auto const four = text_.size() - at_ >= 4;
  if (!four || std::from_chars(begin, begin + 4, code, 16).ptr != begin + 4)
    fail("a \\u is not followed by four hexadecimal digits");
  at_ += 4;
  return code;
}

LOCKSTEP_INLINE Value Parser::number() {
  auto const start = at_;
  accept('-');
  if (!digit(peek())) {
    at_ = start;
    auto const rest = text_.substr(at_);
    for (std::string_view const word : {"NaN", "Infinity", "-Infinity"})
      if (rest.starts_with(word))
        fail("a value is needed, and JSON has no " + std::string(word) +
             "; write null, or a number (Python's json.dumps refuses such values with allow_nan=False)");
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

LOCKSTEP_INLINE Value Parser::word(std::string_view word, Value value) {
  if (text_.substr(at_, word.size()) != word) fail("a value is needed, not " + found());
  at_ += word.size();
  return value;
}

LOCKSTEP_INLINE void Parser::digits() {
  while (digit(peek())) ++at_;
}

LOCKSTEP_INLINE void Parser::space() {
  while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != std::string_view::npos) ++at_;
}

LOCKSTEP_INLINE bool Parser::accept(char c) {
  if (at_ == text_.size() || text_[at_] != c) return false;
  ++at_;
  return true;
}

LOCKSTEP_COLD_INLINE std::string Parser::found() const {
  if (at_ == text_.size()) return "the end of the text";
  auto const c = static_cast<unsigned char>(text_[at_]);
  if (c < 0x20 || c == 0x7F) return "byte " + std::to_string(c);
  auto const length = utf8_length(text_.substr(at_));
  if (length == 0) return "byte " + std::to_string(c);
  return "'" + std::string(text_.substr(at_, length)) + "'";
}

LOCKSTEP_COLD_INLINE void Parser::fail(std::string const& what) const {
  std::size_t line = 1, column = 1;
  for (char c : text_.substr(0, at_)) {
    bool const continues = (static_cast<unsigned char>(c) & 0xC0) == 0x80;  // columns count characters
    column = c == '\n' ? 1 : continues ? column : column + 1;
    line += c == '\n';
  }
  throw DataError(std::string(name_) + ": line " + std::to_string(line) + ", column " + std::to_string(column) + ": " +
                  what);
}

}}}  // namespace lockstep::json::detail

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

LOCKSTEP_INLINE Value parse(std::string_view text, std::string_view name, LoneSurrogates lone) {
  try {
    return detail::Parser(text, name, lone).document();
  } catch (std::bad_alloc const&) {
    throw OutOfMemoryError(out_of_memory_message(std::string(name), text.size()));
  }
}

}}}  // namespace lockstep::json
