// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/vocabulary.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <rapidcheck.h>
#include <lockstep/data/text/ngram_tokenizer.hpp>
#include <lockstep/data/text/word_tokenizer.hpp>

using namespace lockstep;

TEST_CASE("ids begin at 2; padding is 0 and unknown tokens are 1") {
  data::Vocabulary const words{{"the", "a", "."}};
  CHECK(words.size() == 5);
  CHECK(words.id("the") == 2);
  CHECK(words.id(".") == 4);
  CHECK(words.id("dog") == data::Vocabulary::unknown);
  CHECK(words.id("") == data::Vocabulary::unknown);
  CHECK(words.token(2) == "the");
  CHECK(words.token(0) == "<padding>");
  CHECK(words.token(1) == "<unknown>");
  CHECK(data::Vocabulary{}.size() == 2);
  CHECK(data::Vocabulary{}.id("the") == 1);
}

TEST_CASE("encoding keeps the first tokens and is never empty") {
  data::Vocabulary const words{{"the", "a"}};
  data::WordTokenizer const tokenizer;
  using Ids = std::vector<std::int32_t>;
  CHECK(words.encode("The dog, a", tokenizer, 10) == Ids{2, 1, 1, 3});
  CHECK(words.encode("The dog, a", tokenizer, 2) == Ids{2, 1});
  CHECK(words.encode("", tokenizer, 5) == Ids{1});
}

TEST_CASE("tokens are unique and not empty") {
  CHECK_THROWS_WITH_AS((data::Vocabulary{{"a", "b", "a"}}), doctest::Contains("line 3 repeats the token of line 1"),
                       DataError);
  CHECK_THROWS_WITH_AS((data::Vocabulary{{"a", ""}}), doctest::Contains("line 2 holds no token"), DataError);
}

TEST_CASE("the text form has one token per line and is read back unchanged") {
  data::Vocabulary const odd{{"\n", "\\", "\\n", "\r", "a b", "\xc3\xa9"}};
  CHECK(odd.to_text() == "\\n\n\\\\\n\\\\n\n\\r\na b\n\xc3\xa9\n");
  CHECK(data::Vocabulary::from_text(odd.to_text()) == odd);
  CHECK(data::Vocabulary::from_text("").size() == 2);
  CHECK(rc::check("from_text inverts to_text", [](std::set<std::string> tokens) {
    tokens.erase("");
    data::Vocabulary const words{{tokens.begin(), tokens.end()}};
    RC_ASSERT(data::Vocabulary::from_text(words.to_text()) == words);
  }));
}

TEST_CASE("the text form is valid UTF-8, and bytes that are not UTF-8 are read back unchanged") {
  using namespace std::string_literals;
  data::Vocabulary const words{{"caf\xe9", "\xe4\xb8", "\xad\xe6", "x\xff\\", "\xe4\xb8\xad", "\0"s}};
  CHECK(words.to_text() == "caf\\xe9\n\\xe4\\xb8\n\\xad\\xe6\nx\\xff\\\\\n\xe4\xb8\xad\n\0\n"s);
  CHECK(data::Vocabulary::from_text(words.to_text()) == words);
  for (auto const* line : {"\\x4", "\\x4g", "\\xg4", "\\x41", "\\x"})
    CHECK_THROWS_WITH_AS(static_cast<void>(data::Vocabulary::from_text(std::string(line) + "\n")),
                         doctest::Contains("line 1 has a backslash before neither"), DataError);
}

TEST_CASE("a limit bounds the ids, and memory is reserved only for tokens that the text can hold") {
  data::Vocabulary const words{{"a", "b"}};
  auto const letters = data::NgramTokenizer{.width = 1};
  CHECK(words.encode("abab", letters, std::numeric_limits<Index>::max()) == std::vector<std::int32_t>{2, 3, 2, 3});
  CHECK(words.encode("abab", letters, 3) == std::vector<std::int32_t>{2, 3, 2});
  CHECK(words.encode("abab", letters, 0) == std::vector<std::int32_t>{1});
  CHECK(words.encode("abab", letters, -1) == std::vector<std::int32_t>{1});
}

TEST_CASE("a damaged text form is refused with the line") {
  CHECK_THROWS_WITH_AS(static_cast<void>(data::Vocabulary::from_text("a\nb")), doctest::Contains("line 2 does not end"),
                       DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(data::Vocabulary::from_text("a\n\\x\n")),
                       doctest::Contains("line 2 has a backslash"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(data::Vocabulary::from_text("a\n\\\n")),
                       doctest::Contains("line 2 has a backslash"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(data::Vocabulary::from_text("a\na\n")), doctest::Contains("line 2 repeats"),
                       DataError);
}

TEST_CASE("any text is a valid vocabulary or refused") {
  CHECK(rc::check("no crash", [] {
    auto const text = *rc::gen::container<std::string>(rc::gen::element('\\', '\n', '\n', 'n', 'r', 'a'));
    try {
      RC_ASSERT(data::Vocabulary::from_text(text).to_text() == text);
    } catch (DataError const& error) {
      RC_ASSERT(std::string(error.what()).find("Vocabulary: line ") == 0);
    }
  }));
}
