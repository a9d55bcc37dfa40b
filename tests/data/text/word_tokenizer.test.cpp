// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/word_tokenizer.hpp>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <lockstep/core/mix.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

namespace {
std::vector<std::string> tokens(std::string_view text) {
  std::vector<std::string> out;
  data::WordTokenizer{}(text, [&](std::string_view token) { out.emplace_back(token); });
  return out;
}
using Tokens = std::vector<std::string>;

/// Returns the tokens of a text, found byte by byte.
Tokens expected(std::string_view text) {
  auto const byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0; };
  auto const is_word = [&](std::size_t i) { return std::isalnum(byte(i)) != 0 || byte(i) >= 0x80; };
  auto const continues = [&](std::size_t i) { return (byte(i) & 0xc0) == 0x80; };
  Tokens out;
  for (std::size_t at = 0; at < text.size();) {
    auto end = at;
    while (is_word(end) && end - at < 64) ++end;
    if (end == at) {
      if (byte(at) > 0x20 && byte(at) != 0x7f) out.emplace_back(1, text[at]);
      ++at;
      continue;
    }
    if (end - at == 64 && continues(end)) {  // the character that begins last belongs to the next word
      auto begin = end - 1;
      while (continues(begin) && end - begin < 3) --begin;
      if (byte(begin) >= 0xc0) end = begin;
    }
    std::string word(text.substr(at, end - at));
    for (auto& c : word)
      if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    out.push_back(word);
    at = end;
  }
  return out;
}
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

TEST_CASE("texts of any bytes and lengths give the tokens that are found byte by byte") {
  std::string all;
  for (int c = 0; c < 256; ++c) all += static_cast<char>(c);
  CHECK(tokens(all) == expected(all));
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    auto const random = [&](std::uint64_t n) { return mix(seed, n); };
    auto const size = seed < 140 ? seed : seed < 160 ? 1014 + seed - 140 : random(0) % 5000;
    // Few separators, so that words cross groups and blocks and are longer than 64 bytes.
    auto const one_of = std::uint64_t{1} << seed % 9;
    std::string text;
    for (std::uint64_t i = 1; text.size() < size; ++i) {
      if (random(i) % one_of == 0)
        text += static_cast<char>(random(i) >> 32);
      else if (seed % 3 == 0)
        text += "\xf0\x9f\x98\x80";
      else if (seed % 3 == 1)
        text += "\xe4\xb8\xad";
      else
        text += static_cast<char>('A' + random(i) % 58);
    }
    text.resize(size);
    CAPTURE(seed);
    CHECK(tokens(text) == expected(text));
  }
}
