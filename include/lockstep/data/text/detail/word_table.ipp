// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/data/text/detail/word_table.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace data::detail {

LOCKSTEP_INLINE FrequentWords frequent_words(std::span<WordTable> tables, std::size_t max_words, Index min_count,
                                             ThreadPool& pool) {
  constexpr std::size_t parts = 16;  // by hash: each part is summed separately
  auto const part_of = [](WordTable::Word const& word) { return std::size_t{word.hash >> 28}; };
  struct Candidate {
    Index count;
    std::string_view text;
    std::uint32_t part, number;
  };
  std::array<std::vector<Candidate>, parts> candidates;
  FrequentWords out;
  std::vector<std::vector<WordTable::Word> const*> all_words;
  for (auto& table : tables) {
    all_words.push_back(&table.words());
    out.ids.emplace_back(all_words.back()->size(), WordTable::none);
  }
  pool.run(parts, [&](Index p) {
    auto const part = static_cast<std::size_t>(p);
    auto const each_word = [&](auto const& f) {
      for (std::size_t t = 0; t < tables.size(); ++t) {
        auto const& words = *all_words[t];
        for (std::size_t i = 0; i < words.size(); ++i)
          if (part_of(words[i]) == part) f(words[i], out.ids[t][i]);
      }
    };
    WordTable all;
    each_word([&](auto const& word, auto& id) { id = all.count(word); });
    std::vector<std::uint32_t> numbers;
    numbers.reserve(all.words().size());
    auto& found = candidates[part];
    for (auto const& word : all.words()) {
      auto const number = word.count >= min_count ? static_cast<std::uint32_t>(found.size()) : WordTable::none;
      numbers.push_back(number);
      if (number != WordTable::none)
        found.push_back({word.count, word.view(), static_cast<std::uint32_t>(part), number});
    }
    each_word([&](auto const&, auto& id) { id = numbers[id]; });
  });
  std::vector<Candidate> order;
  for (auto const& found : candidates) order.insert(order.end(), found.begin(), found.end());
  auto const kept = std::min(order.size(), max_words);
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
      [](auto const& a, auto const& b) { return a.count != b.count ? a.count > b.count : a.text < b.text; });
  std::array<std::vector<std::uint32_t>, parts> ids;
  for (std::size_t part = 0; part < parts; ++part) ids[part].assign(candidates[part].size(), WordTable::none);
  for (std::size_t i = 0; i < kept; ++i) {
    ids[order[i].part][order[i].number] = static_cast<std::uint32_t>(i);
    out.words.emplace_back(order[i].text);
  }
  pool.run(static_cast<Index>(tables.size()), [&](Index t) {
    auto const table = static_cast<std::size_t>(t);
    auto const& words = *all_words[table];
    for (std::size_t i = 0; i < words.size(); ++i)
      if (auto& id = out.ids[table][i]; id != WordTable::none) id = ids[part_of(words[i])][id];
  });
  return out;
}

}}}  // namespace lockstep::data::detail
