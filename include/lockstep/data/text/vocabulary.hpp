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
#include <lockstep/core/out_of_memory.hpp>
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
  static constexpr std::int32_t padding = 0;  ///< id of padding
  static constexpr std::int32_t unknown = 1;  ///< id of tokens that the vocabulary lacks

  Vocabulary() = default;
  /// @throws DataError if a token is empty or occurs twice; names both lines of the text form
  explicit Vocabulary(std::vector<std::string> tokens);

  /// Returns the number of ids, including padding and unknown: the rows of an embedding table.
  [[nodiscard]] Index size() const noexcept { return static_cast<Index>(tokens_.size()) + first_token; }
  /// Returns the id of a token, or `unknown`.
  [[nodiscard]] std::int32_t id(std::string_view token) const noexcept;
  /// Returns the token of an id in [0, size()); padding and unknown have names in angle brackets.
  [[nodiscard]] std::string_view token(std::int32_t id) const noexcept;

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
  /// carriage return as `\\`, `\n` and `\r`, and each byte that is not UTF-8 as `\x` and two hex digits.
  [[nodiscard]] std::string to_text() const;
  /// Returns the vocabulary that to_text wrote. @throws DataError naming the line
  [[nodiscard]] static Vocabulary from_text(std::string_view text);

  /// Compares the tokens and their order.
  friend bool operator==(Vocabulary const& a, Vocabulary const& b) noexcept { return a.tokens_ == b.tokens_; }

 private:
  static constexpr std::int32_t first_token = 2;

  static std::string unescaped(std::string_view line, std::size_t number);

  std::vector<std::string> tokens_;
  std::unordered_map<std::string, std::int32_t, detail::StringHash, std::equal_to<>> ids_;
};

}}}  // namespace lockstep::data

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/data/text/vocabulary.ipp>
#endif
