// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/index.hpp>
#include <lockstep/core/utf8.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {
namespace detail {

// Allows lookup in a map of strings with a view, without constructing a string.
struct StringHash {
  using is_transparent = void;
  std::size_t operator()(std::string_view text) const noexcept { return std::hash<std::string_view>{}(text); }
};

}  // namespace detail

/// Tokens and their ids. 0 is padding, 1 is any unknown token, and the tokens follow from 2 in the given order.
/// Thread-safe: nothing changes after construction. TokenCounts builds a vocabulary from texts.
class Vocabulary {
 public:
  static constexpr std::int32_t padding = 0;
  static constexpr std::int32_t unknown = 1;

  Vocabulary() = default;
  /// @throws DataError if a token is empty or occurs twice; names both lines of the text form
  explicit Vocabulary(std::vector<std::string> tokens) : tokens_(std::move(tokens)) {
    ids_.reserve(tokens_.size());
    for (std::size_t i = 0; i < tokens_.size(); ++i) {
      auto const id = static_cast<std::int32_t>(i) + first_token;
      auto const [found, added] = ids_.emplace(tokens_[i], id);
      if (!added || tokens_[i].empty()) {
        throw DataError("Vocabulary: line " + std::to_string(i + 1) +
                        (added ? " holds no token"
                               : " repeats the token of line " + std::to_string(found->second - first_token + 1)) +
                        "; each line must hold one token that no other line holds");
      }
    }
  }

  /// Returns the number of ids, including padding and unknown: the rows of an embedding table.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(tokens_.size()) + first_token; }
  [[nodiscard]] std::int32_t id(std::string_view token) const noexcept {
    auto const found = ids_.find(token);
    return found == ids_.end() ? unknown : found->second;
  }
  /// Returns the token of an id in [0, size()); padding and unknown have names in angle brackets.
  [[nodiscard]] std::string_view token(std::int32_t id) const noexcept {
    if (id < first_token) return id == padding ? "<padding>" : "<unknown>";
    return tokens_[static_cast<std::size_t>(id - first_token)];
  }

  /// Returns the ids of a text's first `limit` tokens. A text without tokens becomes one unknown token, so it is never
  /// empty.
  template <class Tokenizer>
  [[nodiscard]] std::vector<std::int32_t> encode(std::string_view text, Tokenizer const& tokenizer, Index limit) const {
    std::vector<std::int32_t> ids;
    ids.reserve(static_cast<std::size_t>(std::clamp<Index>(limit, 0, static_cast<Index>(text.size()))));
    tokenizer(text, [&](std::string_view token) {
      if (static_cast<Index>(ids.size()) < limit) ids.push_back(id(token));
    });
    if (ids.empty()) ids.push_back(unknown);
    return ids;
  }

  /// Returns one token per line in the order of the ids, from id 2, as valid UTF-8. Writes backslash, line feed and
  /// carriage return as \\, \n and \r, and each byte that is not UTF-8 as \x and two hexadecimal digits.
  [[nodiscard]] std::string to_text() const {
    std::string out;
    for (auto const& token : tokens_) {
      for (std::string_view rest = token; !rest.empty();) {
        auto const length = utf8_length(rest);
        char const c = rest.front();
        if (length == 0) {
          constexpr std::string_view digits = "0123456789abcdef";
          auto const byte = static_cast<unsigned char>(c);
          out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
        } else if (c == '\\' || c == '\n' || c == '\r') {
          out += '\\';
          out += c == '\n' ? 'n' : c == '\r' ? 'r' : '\\';
        } else {
          out += rest.substr(0, length);
        }
        rest.remove_prefix(std::max<std::size_t>(length, 1));
      }
      out += '\n';
    }
    return out;
  }
  /// Returns the vocabulary that to_text wrote. @throws DataError naming the line
  [[nodiscard]] static Vocabulary from_text(std::string_view text) {
    std::vector<std::string> tokens;
    while (!text.empty()) {
      auto const end = text.find('\n');
      if (end == std::string_view::npos) {
        throw DataError("Vocabulary: line " + std::to_string(tokens.size() + 1) + " does not end; the text was cut");
      }
      tokens.push_back(unescaped(text.substr(0, end), tokens.size() + 1));
      text.remove_prefix(end + 1);
    }
    return Vocabulary(std::move(tokens));
  }

  friend bool operator==(Vocabulary const& a, Vocabulary const& b) noexcept { return a.tokens_ == b.tokens_; }

 private:
  static constexpr std::int32_t first_token = 2;

  static std::string unescaped(std::string_view line, std::size_t number) {
    std::string out;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] != '\\') {
        out += line[i];
        continue;
      }
      auto const next = ++i < line.size() ? line[i] : ' ';
      if (next == 'x' && i + 2 < line.size()) {
        unsigned byte = 0;
        auto const* const begin = line.data() + i + 1;
        if (std::from_chars(begin, begin + 2, byte, 16).ptr == begin + 2 && byte >= 0x80) {
          out += static_cast<char>(byte);
          i += 2;
          continue;
        }
      }
      if (next != 'n' && next != 'r' && next != '\\') {
        throw DataError("Vocabulary: line " + std::to_string(number) +
                        " has a backslash before neither n, r, a backslash nor x with two hexadecimal digits from 80");
      }
      out += next == 'n' ? '\n' : next == 'r' ? '\r' : '\\';
    }
    return out;
  }

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t, detail::StringHash, std::equal_to<>> ids_;
};

}}}  // namespace lockstep::data
