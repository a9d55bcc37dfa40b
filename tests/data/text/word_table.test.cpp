// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/detail/word_table.hpp>

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include <lockstep/core/mix.hpp>
#include <lockstep/data/text/token_counts.hpp>

using namespace lockstep;
using data::detail::WordTable;

namespace {
struct Whole {
  void operator()(std::string_view text, auto&& each) const { each(text); }
};
/// Words of 0 to 40 bytes, frequent and rare ones; many differ in only one byte.
std::string word(std::uint64_t draw) {
  auto const number = mix(draw) % (draw % 3 == 0 ? 20 : 40000);
  auto const size = number % 41;
  std::string out(size, static_cast<char>('a' + number % 3));
  if (size > 0) out[mix(number) % size] = static_cast<char>('0' + number % 61);
  return out;
}
}  // namespace

TEST_CASE("counts and numbers equal those of a map, for words of every length") {
  WordTable table;
  std::map<std::string, Index> expected;
  std::map<std::string, std::uint32_t> numbers;
  for (std::uint64_t i = 0; i < 200000; ++i) {
    auto const each = word(i);
    auto const number = table.count(each);
    ++expected[each];
    auto const [known, is_new] = numbers.emplace(each, number);
    REQUIRE(known->second == number);
    if (is_new) REQUIRE(number == numbers.size() - 1);
  }
  REQUIRE(table.words().size() == expected.size());
  for (auto const& each : table.words()) REQUIRE(each.count == expected.at(std::string(each.view())));
  for (auto const& [each, number] : numbers) REQUIRE(table.find(each) == number);
  CHECK(table.find("absent") == WordTable::none);
  CHECK(WordTable().find("absent") == WordTable::none);
  CHECK(expected.size() > 5000);
}

TEST_CASE("words that differ in one byte or in length have different bytes") {
  for (std::size_t size = 0; size < 16; ++size) {
    std::string const plain(size, 'a');
    for (std::size_t at = 0; at < size; ++at) {
      auto other = plain;
      other[at] = 'b';
      CHECK_FALSE(data::detail::WordBytes(plain) == data::detail::WordBytes(other));
    }
    CHECK_FALSE(data::detail::WordBytes(plain) == data::detail::WordBytes(plain + std::string(1, '\0')));
  }
}

TEST_CASE("a word in a padded buffer has the bytes of the word alone") {
  for (std::uint64_t draw = 0; draw < 2000; ++draw) {
    auto const alone = word(draw);
    auto const buffer = alone + std::string(data::detail::PaddedWord::readable, static_cast<char>(draw));
    CHECK(data::detail::WordBytes(data::detail::PaddedWord(buffer.data(), alone.size())) ==
          data::detail::WordBytes(alone));
  }
}

TEST_CASE("the frequent words do not depend on how the text is divided among tables") {
  data::TokenCounts counts;
  constexpr std::uint64_t words = 30000;
  for (std::uint64_t i = 0; i < words; ++i) counts.add(word(i) + "x", Whole{});
  ThreadPool pool(2);
  for (std::size_t const parts : std::vector<std::size_t>{1, 2, 5})
    for (Index const size : {3, 100, 100000}) {
      std::vector<WordTable> tables(parts);
      std::vector<std::vector<std::string>> texts(parts);
      for (std::uint64_t i = 0; i < words; ++i) {
        auto const table = mix(i, 7) % parts;
        auto const number = tables[table].count(word(i) + "x");
        if (number == texts[table].size()) texts[table].push_back(word(i) + "x");
      }
      auto const vocabulary = counts.vocabulary(size, 2);
      auto const found = data::detail::frequent_words(tables, static_cast<std::size_t>(size - 2), 2, pool);
      CHECK(data::Vocabulary(found.words) == vocabulary);
      for (std::size_t table = 0; table < parts; ++table)
        for (std::size_t i = 0; i < texts[table].size(); ++i) {
          auto const id = found.ids[table][i];
          REQUIRE((id == WordTable::none ? 1 : static_cast<std::int32_t>(id) + 2) == vocabulary.id(texts[table][i]));
        }
    }
}
