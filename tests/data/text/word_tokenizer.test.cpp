// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/word_tokenizer.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> out;
  data::WordTokenizer{}(text, [&](std::string_view token) { out.emplace_back(token); });
  return out;
}
using Tokens = std::vector<std::string>;
}  // namespace

TEST_CASE("lower-case words and single punctuation marks are tokens") {
  CHECK(tokens("") == Tokens{});
  CHECK(tokens(" \t\r\n\x01") == Tokens{});
  CHECK(tokens("Oil hits $50!") == Tokens{"oil", "hits", "$", "50", "!"});
  CHECK(tokens("don't-stop") == Tokens{"don", "'", "t", "-", "stop"});
  CHECK(tokens("std::vector<int> x_1;") == Tokens{"std", ":", ":", "vector", "<", "int", ">", "x", "_", "1", ";"});
  CHECK(tokens("caf\xc3\xa9 A") == Tokens{"caf\xc3\xa9", "a"});
  CHECK(tokens("end") == Tokens{"end"});
}

TEST_CASE("long words are not cut inside a UTF-8 character") {
  std::string const two = "\xc3\xa9", three = "\xe4\xb8\xad", four = "\xf0\x9f\x98\x80";
  for (auto const& character : {two, three, four}) {
    for (std::size_t offset = 0; offset < 5; ++offset) {
      auto text = std::string(offset, 'a');
      for (int i = 0; i < 100; ++i) text += character;
      std::string joined;
      for (auto const& token : tokens(text)) {
        joined += token;
        CHECK((token.size() - (token[0] == 'a' ? offset : 0)) % character.size() == 0);
        CHECK(token.size() <= 64);
      }
      CHECK(joined == text);
    }
  }
  CHECK(tokens(std::string(65, '\x80')) == Tokens{std::string(64, '\x80'), "\x80"});  // not UTF-8
}

TEST_CASE("long words are cut at 64 bytes") {
  for (std::size_t length : {63u, 64u, 65u, 128u, 129u}) {
    auto const found = tokens(std::string(length, 'A'));
    REQUIRE(found.size() == (length + 63) / 64);
    CHECK(found.front() == std::string(std::min<std::size_t>(length, 64), 'a'));
    CHECK(found.back().size() == (length - 1) % 64 + 1);
  }
}
