// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <lockstep/interop/sentencepiece.hpp>

#include "python.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using interop::SentencePiece;

namespace {

std::vector<std::string> texts() {
  std::vector<std::string> const subjects{"the weather", "the rain", "tomorrow the sun", "das Wetter",
                                          "größer als der Wind"};
  std::vector<std::string> const verbs{"comes from", "goes to", "stays in", "wird besser in"};
  std::vector<std::string> const places{"the north", "Bavaria", "the Alps", "Köln", "east and west", "the south"};
  std::vector<std::string> all;
  for (auto const& a : subjects)
    for (auto const& b : verbs)
      for (auto const& c : places) all.push_back(a + " " + b + " " + c);
  return all;
}

}  // namespace

TEST_CASE("a trained model encodes and decodes its texts") {
  auto const all = texts();
  auto const pieces = SentencePiece::train(all, {.vocabulary = 120});
  CHECK(pieces.size() > 40);
  CHECK(pieces.size() <= 120);
  CHECK(pieces.begin() == 1);
  CHECK(pieces.end() == 2);
  CHECK(pieces.unknown() == 3);
  for (auto const& text : all) {
    auto ids = pieces.encode(text);
    REQUIRE_FALSE(ids.empty());
    CHECK(ids.size() < text.size());
    CHECK(pieces.decode(ids) == text);
    ids.insert(ids.begin(), pieces.begin()), ids.push_back(pieces.end());
    CHECK(pieces.decode(ids) == text);
  }
  CHECK(pieces.encode("").empty());
  CHECK(pieces.encode("猫") != pieces.encode("the"));
}

TEST_CASE("equal texts give equal bits, and a saved model is loaded again from its text") {
  auto const all = texts();
  auto const pieces = SentencePiece::train(all, {.vocabulary = 100});
  CHECK(pieces == SentencePiece::train(all, {.vocabulary = 100}));
  CHECK_FALSE(pieces == SentencePiece::train(std::span(all).first(60), {.vocabulary = 100}));
  auto const text = pieces.to_text();
  CHECK(text.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=") ==
        std::string::npos);
  CHECK(SentencePiece::from_text(text) == pieces);
  CHECK(SentencePiece::from_text(text).encode(all[0]) == pieces.encode(all[0]));
}

TEST_CASE("invalid models and training options are refused") {
  lockstep_test::TemporaryFolder const folder;
  CHECK_THROWS_WITH_AS(SentencePiece::load(folder / "none.model"), doctest::Contains("none.model: cannot be read"),
                       DataError);
  lockstep_test::write_file(folder / "other.model", "no model at all");
  CHECK_THROWS_WITH_AS(SentencePiece::load(folder / "other.model"),
                       doctest::Contains("other.model: is no sentencepiece model"), DataError);
  CHECK_THROWS_AS(SentencePiece::from_text("Zm9v"), DataError);
  CHECK_THROWS_WITH_AS(SentencePiece::train(texts(), {.vocabulary = 10}),
                       doctest::Contains("no vocabulary of at most 10 pieces"), ConfigError);
  CHECK_THROWS_AS(SentencePiece::train({}, {}), ConfigError);
  auto const pieces = SentencePiece::train(texts(), {.vocabulary = 60});
  std::vector<std::int32_t> const outside{4, static_cast<std::int32_t>(pieces.size())};
  CHECK_THROWS_AS(static_cast<void>(pieces.decode(outside)), DataError);
}

TEST_CASE("a model file equals the one of Python's sentencepiece") {
  if (!lockstep_test::has_python_module("sentencepiece")) return;
  lockstep_test::TemporaryFolder const folder;
  auto const pieces = SentencePiece::train(texts(), {.vocabulary = 80});
  lockstep_test::write_file(folder / "a.model", pieces.bytes());
  auto const command = "'" + lockstep_test::python() +
                       "' -c 'import sys, sentencepiece as s; p = s.SentencePieceProcessor(model_file=sys.argv[1]); "
                       "print(*p.encode(\"das Wetter comes from Köln\"))' " +
                       (folder / "a.model") + " >" + (folder / "ids");
  REQUIRE(std::system(command.c_str()) == 0);
  std::string expected;
  for (auto const id : pieces.encode("das Wetter comes from Köln"))
    expected += (expected.empty() ? "" : " ") + std::to_string(id);
  CHECK(lockstep_test::read_file(folder / "ids") == expected + "\n");
  auto const loaded = SentencePiece::load(folder / "a.model");
  CHECK(loaded == pieces);
}
