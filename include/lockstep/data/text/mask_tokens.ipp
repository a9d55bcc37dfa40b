// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/shortest.hpp>
#include <lockstep/data/text/mask_tokens.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE TokenMasker::TokenMasker(MaskTokensOptions const& options)
    : options_(options), kinds_(static_cast<std::size_t>(std::max<Index>(options.vocabulary, 0)), Kind::begins_word) {
  auto const set_special = [&](std::int32_t id, char const* name) {
    if (id < 0 || id >= options.vocabulary)
      throw ConfigError("MaskTokens: ." + std::string(name) + " has the id " + std::to_string(id) +
                        ", and .vocabulary is " + std::to_string(options.vocabulary) +
                        "; ids are from 0 to .vocabulary - 1");
    kinds_[static_cast<std::size_t>(id)] = Kind::special;
  };
  set_special(options.mask, "mask");
  for (auto const id : options.special) set_special(id, "special");
  if (!(options.share > 0 && options.share <= 1))
    throw ConfigError("MaskTokens: .share is " + shortest(options.share) + "; it must be above 0 and at most 1");
  if (!(options.mask_share >= 0 && options.random_share >= 0 && options.mask_share + options.random_share <= 1))
    throw ConfigError("MaskTokens: .mask_share is " + shortest(options.mask_share) + " and .random_share " +
                      shortest(options.random_share) + "; they must be at least 0, and their sum at most 1");
  for (std::int32_t id = 0; id < options.vocabulary; ++id) {
    auto& kind = kinds_[static_cast<std::size_t>(id)];
    if (kind == Kind::special) continue;
    ordinary_.push_back(id);
    if (options.continues_word && options.continues_word(id)) kind = Kind::continues_word;
  }
  if (ordinary_.empty())
    throw ConfigError("MaskTokens: all " + std::to_string(options.vocabulary) +
                      " ids are special; texts need other ids, which can be masked");
}

LOCKSTEP_INLINE std::vector<std::int32_t> TokenMasker::words_of(std::span<std::int32_t const> tokens) const {
  std::vector<std::int32_t> words;
  words.reserve(tokens.size());
  auto before = Kind::special;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    auto const token = tokens[i];
    if (token < 0 || token >= options_.vocabulary)
      throw DataError("MaskTokens: token " + std::to_string(i) + " is " + std::to_string(token) +
                      ", and .vocabulary is " + std::to_string(options_.vocabulary) +
                      "; ids are from 0 to .vocabulary - 1");
    auto const kind = kinds_[static_cast<std::size_t>(token)];
    if (kind == Kind::begins_word || (kind == Kind::continues_word && before == Kind::special))
      words.push_back(static_cast<std::int32_t>(i));
    before = kind;
  }
  return words;
}

LOCKSTEP_INLINE std::size_t TokenMasker::end_of_word(std::span<std::int32_t const> tokens, std::size_t first) const {
  auto end = first + 1;
  while (end < tokens.size() && kinds_[static_cast<std::size_t>(tokens[end])] == Kind::continues_word) ++end;
  return end;
}

LOCKSTEP_INLINE void TokenMasker::mask(std::vector<std::int32_t>& tokens, std::vector<std::int32_t>& places,
                                       std::vector<std::int32_t>& labels, Philox const& random) const {
  places.clear();
  labels.clear();
  auto words = words_of(tokens);
  if (words.empty()) return;
  auto const ordinary = std::accumulate(words.begin(), words.end(), std::size_t{0}, [&](std::size_t sum, auto first) {
    auto const at = static_cast<std::size_t>(first);
    return sum + end_of_word(tokens, at) - at;
  });
  auto const wanted =
      std::max<std::size_t>(1, static_cast<std::size_t>(std::lround(options_.share * static_cast<double>(ordinary))));
  places.reserve(wanted);
  auto const below = [](std::uint64_t bits, std::size_t count) { return bits * count >> 32; };  // uniform in [0, count)
  for (std::size_t i = 0; i < words.size() && places.size() < wanted; ++i) {  // the begin of a Fisher-Yates shuffle
    std::swap(words[i], words[i + below(random(i, 0)[0], words.size() - i)]);
    auto const first = static_cast<std::size_t>(words[i]), end = end_of_word(tokens, first);
    if (places.size() + (end - first) > wanted) continue;
    for (auto at = first; at < end; ++at) places.push_back(static_cast<std::int32_t>(at));
  }
  std::sort(places.begin(), places.end());
  labels.reserve(places.size());
  for (auto const place : places) {
    auto& token = tokens[static_cast<std::size_t>(place)];
    labels.push_back(token);
    auto const bits = random(static_cast<std::uint64_t>(place), 1);
    auto const which = static_cast<double>(bits[0]) * 0x1p-32;
    if (which < options_.mask_share)
      token = options_.mask;
    else if (which < options_.mask_share + options_.random_share)
      token = ordinary_[below(bits[1], ordinary_.size())];
  }
}

}}}  // namespace lockstep::data::detail
