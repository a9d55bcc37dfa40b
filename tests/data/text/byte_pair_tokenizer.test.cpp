// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/byte_pair_tokenizer.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

#include "../../temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

using Ids = std::vector<std::int32_t>;

// The character of a byte in the files.
std::string character(int byte) {
  bool const printable = (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  int code = byte;
  if (!printable) {  // the next one from 256 on
    code = 256;
    for (int before = 0; before < byte; ++before)
      code += !((before >= 33 && before <= 126) || (before >= 161 && before <= 172) || before >= 174);
  }
  if (code < 0x80) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | code >> 6), static_cast<char>(0x80 | (code & 0x3f))};
}

// Ids 0 to 255 are the bytes. The expected ids are the output of Hugging Face's ByteLevelBPETokenizer (tokenizers 0.23)
// for these files.
constexpr std::string_view pairs =
    "#version: 0.2\n\xc4\xa0 t\nh e\n\xc4\xa0t he\ni n\n\xc4\xa0 a\nr e\no n\n\xc4\xa0t h\ne r\n\xc4\xa0 \xc4\xa0\n"
    "\xc4\xa0\xc4\xa0 \xc4\xa0\xc4\xa0\na a\naa aa\nin g\n\xc4\xa0"
    "a n\n\xc3\x83 \xc2\xa9\nl l\n' s\n1 2\n12 3\n\xc4\x8a \xc4\x8a\nt he\n";

std::string vocabulary_of(std::string_view merges, std::string_view special = "<|endoftext|>") {
  std::string json = "{";
  int id = 0;
  auto const add = [&](std::string const& token) {
    json += (id > 0 ? ", \"" : "\"") + (token == "\"" || token == "\\" ? "\\" + token : token) +
            "\": " + std::to_string(id);
    ++id;
  };
  for (int byte = 0; byte < 256; ++byte) add(character(byte));
  for (std::string_view rest = merges.substr(merges.find('\n') + 1); !rest.empty();) {
    std::string line(rest.substr(0, rest.find('\n')));
    rest.remove_prefix(line.size() + 1);
    line.erase(line.find(' '), 1);
    add(line);
  }
  add(std::string(special));
  return json + "}";
}

struct Fixture {
  TemporaryFolder folder;
  std::string vocabulary = folder / "vocab.json", merges = folder / "merges.txt";
  Fixture() {
    write_file(vocabulary, vocabulary_of(pairs));
    write_file(merges, std::string(pairs));
  }
};

}  // namespace

TEST_CASE_FIXTURE(Fixture, "pairs are merged within words, the earliest line first") {
  data::BytePairTokenizer const tokenizer{vocabulary, merges};
  CHECK(tokenizer.size() == 279);
  CHECK(tokenizer.encode("").empty());
  CHECK(tokenizer.encode("the other the") == Ids{277, 32, 111, 277, 114, 258});
  CHECK(tokenizer.encode("1234 12345") == Ids{275, 52, 32, 275, 52, 53});
  CHECK(tokenizer.encode("aaaaaaa aaa") == Ids{268, 267, 97, 260, 267});
  CHECK(tokenizer.token(258) == " the");
  CHECK(tokenizer.token(10) == "\n");
}

TEST_CASE_FIXTURE(Fixture, "words are contractions, letters, digits, others and white space, as in GPT-2") {
  data::BytePairTokenizer const tokenizer{vocabulary, merges};
  CHECK(tokenizer.encode("  the") == Ids{32, 258});
  CHECK(tokenizer.encode("   \n\n  x") == Ids{265, 32, 276, 32, 32, 120});
  CHECK(tokenizer.encode("     ") == Ids{266, 32});
  CHECK(tokenizer.encode("she'll re'read it's 'the' ''s") ==
        Ids{115, 257, 39, 272, 32, 261, 39, 261, 97, 100, 32, 105, 116, 273, 32, 39, 277, 39, 32, 39, 39, 115});
  CHECK(tokenizer.encode("x\t\ty \r\n z") == Ids{120, 9, 9, 121, 32, 13, 10, 32, 122});
  CHECK(tokenizer.encode("ring!'s in...ing ") == Ids{114, 269, 33, 39, 115, 32, 259, 46, 46, 46, 269, 32});
  CHECK(tokenizer.encode("caf\xc3\xa9 \xc3\xa9\xc3\xa9") == Ids{99, 97, 102, 271, 32, 271, 271});
  CHECK(tokenizer.encode("a\xc2\xa0"
                         "b \xe3\x80\x80\xe3\x80\x80"
                         "c") == Ids{97, 194, 160, 98, 32, 227, 128, 128, 227, 128, 128, 99});
  CHECK(tokenizer.encode("\xe2\x80\xa8\xc2\x85the") == Ids{226, 128, 168, 194, 133, 277});
  CHECK(tokenizer.encode("\xe1\xba\x9b\xcc\xa3 \xc2\xb2\xe2\x85\xa7 \xc2\xbd") ==
        Ids{225, 186, 155, 204, 163, 32, 194, 178, 226, 133, 167, 32, 194, 189});
}

TEST_CASE_FIXTURE(Fixture, "a special token has an id, and no meaning in a text") {
  data::BytePairTokenizer const tokenizer{vocabulary, merges};
  CHECK(tokenizer.id("<|endoftext|>") == 278);
  CHECK(tokenizer.encode("<|endoftext|>") == Ids{60, 124, 101, 110, 100, 111, 102, 116, 101, 120, 116, 124, 62});
  CHECK(tokenizer.decode(Ids{277, 278}) == "the<|endoftext|>");
  CHECK_THROWS_WITH_AS(static_cast<void>(tokenizer.id("<|pad|>")),
                       "BytePairTokenizer: the vocabulary has no token \"<|pad|>\"", ConfigError);
}

TEST_CASE_FIXTURE(Fixture, "ids decode to the bytes of the text, also of one that is not UTF-8") {
  data::BytePairTokenizer const tokenizer{vocabulary, merges};
  std::mt19937 random(1);
  for (int length = 0; length < 200; ++length) {
    std::string text;
    for (int i = 0; i < length; ++i)
      text += length % 2 == 0 ? static_cast<char>(random()) : "the ' \xc3\xa9\n12a"[random() % 11];
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
  CHECK_THROWS_WITH_AS(static_cast<void>(tokenizer.decode(Ids{1, 279})),
                       "BytePairTokenizer: id 279 is not one of the vocabulary's 279 tokens", DataError);
  CHECK_THROWS_AS(static_cast<void>(tokenizer.decode(Ids{-1})), DataError);
}

TEST_CASE_FIXTURE(Fixture, "a long word takes little more than linear time") {
  data::BytePairTokenizer const tokenizer{vocabulary, merges};
  auto const ids = tokenizer.encode(std::string(50'000, 'a'));  // a square number of steps would take seconds
  CHECK(ids.size() == 12'500);
  CHECK(ids == Ids(12'500, 268));
}

TEST_CASE_FIXTURE(Fixture, "files that do not fit together are refused with file and line") {
  auto const refused = [&](std::string const& file, std::string const& content, char const* message) {
    auto const before = read_file(file);
    write_file(file, content);
    CHECK_THROWS_WITH_AS(data::BytePairTokenizer(vocabulary, merges), doctest::Contains(message), DataError);
    write_file(file, before);
  };
  refused(merges, "t h\nq q\n", "line 1: \"t h\" needs the token \"th\", which the vocabulary does not have");
  refused(merges, "h e\n\nhe\n", "line 3: \"he\" is no pair of tokens");
  refused(merges, "h e r\n", "line 1: \"h e r\" is no pair of tokens");
  refused(merges, "h e\ni n\nh e\n", "line 3: \"h e\" is a pair of an earlier line");
  refused(vocabulary, "[]", "an object");
  refused(vocabulary, "{\"a\": 0}", "has no token \"\xc4\x80\" for the byte 0");
  refused(vocabulary, "{\"a\": 0, \"b\": 2}", "gives the id 2 to the token \"b\"");
  refused(vocabulary, "{\"a\": 0, \"b\": 0}", "gives the id 0 to the token \"b\"");
  refused(vocabulary, "{\"a\": -1}", "gives the id -1");
  refused(vocabulary, "{\"" + std::string(65537, 'a') + "\": 0}", "has a token of 65537 bytes, id 0");
  refused(vocabulary, "{\"a\": \"b\"}", "an integer");
  refused(vocabulary, "the\nof\n", "vocab.json");
  CHECK_THROWS_AS(data::BytePairTokenizer(folder / "none", merges), DataError);
  CHECK_THROWS_AS(data::BytePairTokenizer(vocabulary, folder / "none"), DataError);
  write_file(merges, "h e\r\ni n\r\n");  // line ends of Windows, without a version
  CHECK(data::BytePairTokenizer(vocabulary, merges).encode("hein") == Ids{257, 259});
}

TEST_CASE_FIXTURE(Fixture, "a token that its own merges do not make is not used for a word") {
  write_file(vocabulary, vocabulary_of("\nh e\nt h\nt he\n"));
  write_file(merges, "h e\nt h\nt he\n");
  CHECK(data::BytePairTokenizer(vocabulary, merges).encode("the") == Ids{258});
  write_file(merges, "t h\nt he\n");  // "th" is merged first, and "the" is never made
  CHECK(data::BytePairTokenizer(vocabulary, merges).encode("the") == Ids{257, 101});
}
