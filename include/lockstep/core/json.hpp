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

#include <lockstep/core/error.hpp>
#include <lockstep/core/json_value.hpp>
#include <lockstep/core/name_table.hpp>
#include <lockstep/core/out_of_memory.hpp>
#include <lockstep/core/parse_real.hpp>
#include <lockstep/core/utf8.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace json {

/// Limit for the bytes of a JSON file of Lockstep, such as run.json, when it is read.
inline constexpr std::uint64_t max_file_bytes = std::uint64_t{1} << 28;

/// Handling of half a surrogate pair in a string, such as "\\ud83d".
enum class LoneSurrogates {
  refuse,   ///< an error
  replace,  ///< read as U+FFFD
};

namespace detail {

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

}  // namespace detail

/// Parses one JSON text (RFC 8259) strictly: only white space around the value, no comments, no trailing commas, and
/// unique names. Strings must be UTF-8, integers must fit 64 bits and numbers a double; at most 256 levels are allowed.
/// @param name the file's name, for messages
/// @throws DataError with name, line and column
[[nodiscard]] Value parse(std::string_view text, std::string_view name = "json",
                          LoneSurrogates lone = LoneSurrogates::refuse);

/// Returns f(), which reads the parsed value of a file. Adds the file's name to the errors of Value, which does not
/// know it.
/// @throws DataError with the name; other exceptions of f unchanged
template <class Function>
decltype(auto) with_file_name(std::string const& name, Function&& f) {
  try {
    return f();
  } catch (DataError const& error) {
    if (!std::string_view(error.what()).starts_with("json: ")) throw;
    throw DataError(name + ": " + error.what());
  }
}

}}}  // namespace lockstep::json

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/core/json.ipp>
#endif
