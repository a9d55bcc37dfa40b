// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/word_piece_tokenizer.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/text/token_counts.hpp>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

// Ids 0 to 26. The expected ids are the output of Hugging Face's BertTokenizer (tokenizers 0.23) for the texts below,
// with this file.
constexpr std::string_view vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\nun\n##aff\n##able\n##a\ncafe\nCaf\xc3\xa9\n!\n,\n[\n]"
    "\n\xe4\xb8\xad\n\xe6\x96\x87\n"
    "s\n##e\n##p\n50\n##0\n$\ni\n##\xc3\xa9\n\xe2\x80\x94\na\n";

struct Fixture {
  TemporaryFolder folder;
  std::string path = folder / "vocab.txt";
  Fixture() { write_file(path, std::string(vocabulary)); }
};
using Ids = std::vector<std::int32_t>;

std::vector<std::string> pieces(data::WordPieceTokenizer const& tokenizer, std::string_view text) {
  std::vector<std::string> out;
  tokenizer(text, [&](std::string_view piece) { out.emplace_back(piece); });
  return out;
}
using Pieces = std::vector<std::string>;

}  // namespace

TEST_CASE_FIXTURE(Fixture, "words are cut into the longest matching pieces and enclosed in [CLS] and [SEP]") {
  data::WordPieceTokenizer const tokenizer{path};
  CHECK(tokenizer.size() == 27);
  CHECK(tokenizer.token(6) == "##aff");
  CHECK(tokenizer.id("[PAD]") == 0);
  CHECK(tokenizer.id("the") == 4);
  CHECK_THROWS_WITH_AS(static_cast<void>(tokenizer.id("[MASK]")),
                       "WordPieceTokenizer: the vocabulary has no piece \"[MASK]\"", ConfigError);
  CHECK(tokenizer.encode("The unaffable cafe!", 512) == Ids{2, 4, 5, 6, 7, 9, 11, 3});
  CHECK(tokenizer.encode("$500", 512) == Ids{2, 22, 20, 21, 3});
  CHECK(tokenizer.encode("unaffablest the", 512) == Ids{2, 1, 4, 3});  // "##st" is missing: the whole word is unknown
  CHECK(tokenizer.encode("", 512) == Ids{2, 3});
  CHECK(tokenizer.encode(" \t\r\n\xc2\xa0\xe2\x80\xa8", 512) == Ids{2, 3});
  CHECK(tokenizer.encode("[SEP] [sep]", 512) == Ids{2, 13, 17, 18, 19, 14, 13, 17, 18, 19, 14, 3});
  CHECK(pieces(tokenizer, "The UNaff") == Pieces{"the", "un", "##aff"});
}

TEST_CASE_FIXTURE(Fixture, "accents and case are removed if the model is uncased") {
  data::WordPieceTokenizer const uncased{path}, cased{path, {.lower_case = false}};
  for (auto const* text : {"CAF\xc3\x89", "Cafe\xcc\x81", "caf\xc3\xa9"})
    CHECK(uncased.encode(text, 9) == Ids{2, 9, 3});
  CHECK(uncased.encode("\xc4\xb0", 9) == Ids{2, 23, 3});  // dotted capital I
  CHECK(cased.encode("Caf\xc3\xa9", 9) == Ids{2, 10, 3});
  CHECK(cased.encode("cafe\xcc\x81", 9) == Ids{2, 1, 3});
  CHECK(cased.encode("un\xc3\xa9", 9) == Ids{2, 5, 24, 3});
  CHECK(cased.encode("UN", 9) == Ids{2, 1, 3});
}

TEST_CASE_FIXTURE(Fixture,
                  "ideographs and punctuation are separate tokens; control characters and invalid UTF-8 are dropped") {
  data::WordPieceTokenizer const tokenizer{path};
  CHECK(tokenizer.encode("the\xe4\xb8\xad\xe6\x96\x87the", 9) == Ids{2, 4, 15, 16, 4, 3});
  CHECK(tokenizer.encode("un\xe2\x80\x94un", 9) == Ids{2, 5, 25, 5, 3});
  CHECK(tokenizer.encode(std::string_view("t\0he\x01 \x7fun\xe2\x80\x8b"
                                          "aff\xef\xbf\xbd",
                                          18),
                         9) == Ids{2, 4, 5, 6, 3});
  CHECK(tokenizer.encode("th\xff"
                         "e\xc3",
                         9) == Ids{2, 4, 3});
  CHECK(tokenizer.encode("\xf0\x9f\xab\xa8", 9) == Ids{2, 1, 3});  // newer than the tables: kept, and unknown
}

TEST_CASE_FIXTURE(Fixture, "a word of more than a hundred characters is unknown") {
  data::WordPieceTokenizer const tokenizer{path};
  CHECK(tokenizer.encode(std::string(100, 'a'), 512).size() == 102);
  CHECK(tokenizer.encode(std::string(101, 'a'), 512) == Ids{2, 1, 3});
  CHECK(data::WordPieceTokenizer{path, {.max_word_size = 3}}.encode("aaa aaaa", 512) == Ids{2, 26, 8, 8, 1, 3});
}

TEST_CASE_FIXTURE(Fixture, "texts that are too long are truncated, and [CLS] and [SEP] stay") {
  data::WordPieceTokenizer const tokenizer{path};
  for (Index limit = 2; limit < 9; ++limit) {
    auto const ids = tokenizer.encode("the the unaffablest unaffable", limit);
    CHECK(static_cast<Index>(ids.size()) == std::min<Index>(limit, 8));
    CHECK(ids.front() == 2);
    CHECK(ids.back() == 3);
  }
  CHECK_THROWS_WITH_AS(tokenizer.encode("the", 1), "WordPieceTokenizer: the limit is 1; [CLS] and [SEP] alone are 2",
                       ConfigError);
  CHECK_THROWS_AS(tokenizer.encode("the", "the", 2), ConfigError);
}

TEST_CASE_FIXTURE(Fixture, "the longer of two texts is truncated first") {
  data::WordPieceTokenizer const tokenizer{path};
  auto const lengths = [&](int first, int second, Index limit) {
    std::string a, b;
    for (int i = 0; i < first; ++i) a += "the ";
    for (int i = 0; i < second; ++i) b += "un ";
    auto const pair = tokenizer.encode(a, b, limit);
    CHECK(pair.first.front() == 2);
    CHECK(pair.first.back() == 3);
    CHECK(pair.second.back() == 3);
    return std::pair(pair.first.size() - 2, pair.second.size() - 1);
  };
  CHECK(lengths(3, 4, 10) == std::pair<std::size_t, std::size_t>(3, 4));
  CHECK(lengths(3, 9, 10) == std::pair<std::size_t, std::size_t>(3, 4));
  CHECK(lengths(1, 9, 10) == std::pair<std::size_t, std::size_t>(1, 6));
  CHECK(lengths(9, 2, 10) == std::pair<std::size_t, std::size_t>(5, 2));
  CHECK(lengths(9, 8, 10) == std::pair<std::size_t, std::size_t>(4, 3));
  CHECK(lengths(9, 9, 10) == std::pair<std::size_t, std::size_t>(3, 4));
  CHECK(lengths(9, 9, 3) == std::pair<std::size_t, std::size_t>(0, 0));
  CHECK(lengths(0, 9, 10) == std::pair<std::size_t, std::size_t>(0, 7));
}

TEST_CASE_FIXTURE(Fixture, "any bytes are tokenized into ids of the table") {
  data::WordPieceTokenizer const tokenizer{path}, cased{path, {.lower_case = false}};
  std::mt19937 random(5);
  for (int i = 0; i < 2000; ++i) {
    std::string text(random() % 60, ' ');
    for (char& c : text) c = random() % 3 == 0 ? "thean\xc3\xa9\xe4\xb8"[random() % 9] : static_cast<char>(random());
    for (auto const* each : {&tokenizer, &cased}) {
      auto const ids = each->encode(text, 100);
      for (auto const id : ids) CHECK((id >= 0 && id < 27));
      CHECK(each->encode(text + " the", 1000).size() == each->encode(text, 999).size() + 1);
    }
  }
}

TEST_CASE_FIXTURE(Fixture, "a file that is not a vocabulary is refused") {
  CHECK_THROWS_AS(data::WordPieceTokenizer{folder / "none"}, DataError);
  write_file(path, "[PAD]\n[UNK]\nthe\n");
  CHECK_THROWS_WITH_AS(
      data::WordPieceTokenizer{path},
      (path + ": has no line \"[CLS]\"; a BERT vocabulary has that line, with one piece per line").c_str(), DataError);
  write_file(path, "[UNK]\r\n[CLS]\r\n[SEP]\r\nthe");  // with CRLF line ends, and without one at the end
  CHECK(data::WordPieceTokenizer{path}.encode("the", 9) == Ids{1, 3, 2});
}

TEST_CASE_FIXTURE(Fixture, "its pieces can be counted like any tokenizer's") {
  data::TokenCounts counts;
  counts.add("unaffable un", data::WordPieceTokenizer{path});
  CHECK(counts.vocabulary(3).token(2) == "un");
}
