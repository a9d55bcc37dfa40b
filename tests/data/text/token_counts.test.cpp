// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/token_counts.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/text/word_tokenizer.hpp>

using namespace lockstep;

namespace {
data::TokenCounts counts(std::vector<std::string> const& texts) {
  data::TokenCounts out;
  for (auto const& text : texts) out.add(text, data::WordTokenizer{});
  return out;
}
}  // namespace

TEST_CASE("tokens are ordered by descending count, then by text, whatever the order of the texts") {
  auto const words = counts({"c b a", "b a", "a d"}).vocabulary(100);
  CHECK(words.to_text() == "a\nb\nc\nd\n");
  CHECK(counts({"d a", "a b", "a b c"}).vocabulary(100) == words);
}

TEST_CASE("size counts the padding and unknown ids; rare tokens can be left out") {
  auto const all = counts({"c b a", "b a", "a d"});
  CHECK(all.vocabulary(3).to_text() == "a\n");
  CHECK(all.vocabulary(4).to_text() == "a\nb\n");
  CHECK(all.vocabulary(4).size() == 4);
  CHECK(all.vocabulary(100, 2).to_text() == "a\nb\n");
  CHECK(counts({}).vocabulary(10).size() == 2);
  CHECK_THROWS_WITH_AS(static_cast<void>(all.vocabulary(2)), doctest::Contains("vocabulary size is 2"), ConfigError);
}
