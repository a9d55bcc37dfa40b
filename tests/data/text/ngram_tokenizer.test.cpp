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

TEST_CASE("overlapping runs of bytes") {
  CHECK(tokens({}, "abcde") == Tokens{"abc", "bcd", "cde"});
  CHECK(tokens({.width = 3, .stride = 2}, "abcdef") == Tokens{"abc", "cde"});
  CHECK(tokens({.width = 1}, "a\n") == Tokens{"a", "\n"});
  CHECK(tokens({.width = 3}, "abc") == Tokens{"abc"});
  CHECK(tokens({.width = 3}, "ab") == Tokens{"ab"});
  CHECK(tokens({.width = 3}, "") == Tokens{});
}
