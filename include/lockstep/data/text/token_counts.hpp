// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/data/text/vocabulary.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data {

/// Counts the tokens of texts and makes a vocabulary of the most frequent tokens. Pass only training texts.
class TokenCounts {
 public:
  /// Counts the tokens of a text.
  /// @param tokenizer calls each(token) for every token of tokenizer(text, each)
  template <class Tokenizer>
  void add(std::string_view text, Tokenizer const& tokenizer) {
    tokenizer(text, [&](std::string_view token) {
      auto const found = counts_.find(token);
      if (found != counts_.end()) {
        ++found->second;
      } else {
        counts_.emplace(token, 1);
      }
    });
  }

  /// Returns the most frequent tokens, by decreasing count, then by text; equal for any order of the texts. It has at
  /// most `size` ids, including padding and unknown. Leaves out tokens that occur fewer than `min_count` times.
  /// @throws ConfigError if `size` leaves no room for a token
  [[nodiscard]] Vocabulary vocabulary(Index size, Index min_count = 1) const {
    if (size < 3)
      throw ConfigError("TokenCounts: the vocabulary size is " + std::to_string(size) + "; it must be at least 3");
    std::vector<std::pair<Index, std::string_view>> order;
    for (auto const& [token, count] : counts_) {
      if (count >= min_count) order.emplace_back(-count, token);
    }
    auto const kept = std::min(order.size(), static_cast<std::size_t>(size - 2));
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
        [](auto const& a, auto const& b) { return a.first != b.first ? a.first < b.first : a.second < b.second; });
    std::vector<std::string> tokens;
    tokens.reserve(kept);
    for (std::size_t i = 0; i < kept; ++i) tokens.emplace_back(order[i].second);
    return Vocabulary(std::move(tokens));
  }

 private:
  std::unordered_map<std::string, Index, detail::StringHash, std::equal_to<>> counts_;
};

}}}  // namespace lockstep::data
