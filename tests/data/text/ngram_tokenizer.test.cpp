// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/ngram_tokenizer.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
std::vector<std::string> tokens(data::NgramTokenizer tokenizer, std::string_view text) {
  std::vector<std::string> out;
  tokenizer(text, [&](std::string_view token) { out.emplace_back(token); });
  return out;
}
using Tokens = std::vector<std::string>;
}  // namespace

TEST_CASE("overlapping n-grams of bytes") {
  CHECK(tokens({}, "abcde") == Tokens{"abc", "bcd", "cde"});
  CHECK(tokens({.width = 3, .stride = 2}, "abcdef") == Tokens{"abc", "cde"});
  CHECK(tokens({.width = 1}, "a\n") == Tokens{"a", "\n"});
  CHECK(tokens({.width = 3}, "abc") == Tokens{"abc"});
  CHECK(tokens({.width = 3}, "ab") == Tokens{"ab"});
  CHECK(tokens({.width = 3}, "") == Tokens{});
}

TEST_CASE("a stride longer than the text gives only the first token, and a stride of 0 is refused") {
  for (auto const stride : {std::size_t{3}, std::size_t{4}, ~std::size_t{0}, ~std::size_t{0} - 1})
    CHECK(tokens({.width = 3, .stride = stride}, "abcde") == Tokens{"abc"});
  CHECK_THROWS_WITH_AS(tokens({.stride = 0}, "abcde"), "NgramTokenizer: width 3, stride 0; both must be at least 1",
                       ConfigError);
  CHECK_THROWS_AS(tokens({.width = 0}, "abcde"), ConfigError);
}
