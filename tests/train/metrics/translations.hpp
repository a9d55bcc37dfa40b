// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include <lockstep/core/philox.hpp>

#include "python.hpp"
#include "temporary_folder.hpp"

namespace lockstep_test {

struct Translation {
  std::string hypothesis, reference;
  double bleu = 0, chrf = 0;  // as sacrebleu 2.6.0 computes them for this one alone
  std::string tokens = {};    // tokens of the hypothesis, by its tokenizer 13a
};

inline std::vector<Translation> const translations{
    {"the cat sat on the mat", "the cat is on the mat", 37.99178428257963, 64.5779420625287, "the cat sat on the mat"},
    {"Hello, world! It costs 1,234.56 dollars - isn't that $5-off?",
     "Hello world: it costs 1,234.50 dollars; isn't that 5-off?", 20.68720601025941, 63.25349246966396,
     "Hello , world ! It costs 1,234.56 dollars - isn't that $ 5 - off ?"},
    {"", "an empty hypothesis", 0, 0, ""},
    {"Das Wetter morgen: 3-5 Grad, Regen.", "Das Wetter am Morgen: 3-5 Grad und Regen.", 41.06517147271933,
     66.55219531047554, "Das Wetter morgen : 3 - 5 Grad , Regen ."},
    {"größere Städte im Süden", "größere Städte im Süden", 100, 100, "größere Städte im Süden"},
    {"明天 的 天气 很 好 。", "明天 天气 很 好 。", 53.7284965911771, 52.425789532418264, "明天 的 天气 很 好 。"},
    {"a &quot;quoted&quot; &amp; <skipped> text", "a \"quoted\" & text", 100, 32.18522012466003,
     "a \" quoted \" & text"},
    {"x", "y", 0, 0, "x"},
    {"tabs\tand\u00a0no-break\u2003spaces ", "tabs and no-break spaces", 100, 100, "tabs and no-break spaces"},
    {"end.,mark .5,6.x a.b,c", "end . , mark .5 , 6.x a.b ,c", 65.26220818377338, 100,
     "end . , mark . 5,6 . x a . b , c"}};
constexpr double corpus_bleu = 52.34077926479279, corpus_chrf = 67.71868073407319;

/// Compares `score(translations)` with this machine's sacrebleu on 40 corpora of generated texts; skipped without it.
template <class Score>
void check_against_sacrebleu(std::string const& metric, Score const& score) {
  if (!has_python_module("sacrebleu")) return;
  using namespace lockstep;
  static std::vector<std::string> const words{"a",      "b.",   "3,4",   "don't", "-",   "7-", "(x)",
                                              "é",      "über", "\"q\"", "1.5.",  ",,.", "..", "&amp;",
                                              "\u00a0", "天",   "A",     "5%",    "/",   "b"};
  TemporaryFolder const folder;
  std::vector<std::vector<Translation>> corpora(40);
  std::string file;
  for (std::size_t c = 0; c < corpora.size(); ++c) {
    Philox const random(c);
    std::uint64_t draws = 0;
    auto const below = [&](std::size_t n) {
      return static_cast<std::size_t>(uniform(random(0, ++draws)[0]) * static_cast<float>(n));
    };
    auto const text = [&] {
      std::string out;
      for (auto k = below(9); k > 0; --k) (out += out.empty() || below(5) == 0 ? "" : " ") += words[below(20)];
      return out;
    };
    for (auto k = 1 + below(5); k > 0; --k) {
      auto& made = corpora[c].emplace_back(Translation{text(), text()});
      if (below(2) == 0) made.hypothesis = made.reference + (below(2) == 0 ? " ." : "");
      file += std::to_string(c) + "\t" + made.hypothesis + "\t" + made.reference + "\n";
    }
  }
  write_file(folder / "texts.tsv", file);
  write_file(folder / "score.py",
             "import sys\nfrom sacrebleu.metrics import BLEU, CHRF\n"
             "rows = [line.rstrip('\\n').split('\\t') for line in open(sys.argv[1], encoding='utf-8')]\n"
             "for c in range(40):\n"
             "    part = [row for row in rows if row[0] == str(c)]\n"
             "    score = " +
                 metric +
                 "().corpus_score([row[1] for row in part], [[row[2] for row in part]]).score\n"
                 "    print(repr(score))\n");
  auto const command = "'" + python() + "' " + (folder / "score.py") + " " + (folder / "texts.tsv") + " >" +
                       (folder / "scores") + " 2>" + (folder / "errors");
  REQUIRE_MESSAGE(std::system(command.c_str()) == 0, read_file(folder / "errors"));
  auto const printed = read_file(folder / "scores");
  std::size_t at = 0;
  bool any = false;
  for (std::size_t c = 0; c < corpora.size(); ++c) {
    CAPTURE(c);
    std::size_t used = 0;
    double const theirs = std::stod(printed.substr(at), &used);
    at += used;
    CHECK(score(corpora[c]) == doctest::Approx(theirs).epsilon(1e-12));
    any |= theirs > 0 && theirs < 99;
  }
  CHECK(any);
}

}  // namespace lockstep_test
