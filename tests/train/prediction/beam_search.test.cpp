// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/train/prediction/beam_search.hpp>

#include "translator.hpp"

using namespace lockstep;
using namespace lockstep_test;
using train::BeamSearchOptions;
using train::Hypothesis;

namespace {

using Predictor = train::Predictor<TinyTranslator>;

Predictor predictor() {
  TinyTranslator model;
  auto const values = translator_parameters(nn::ParameterLayout::of(model).size());
  return {model, std::span(values)};
}

template <class Collate>
auto batch(std::vector<Pair> const& all, Collate collate) {
  return data::Collated{collate, all};
}
auto next(std::vector<std::int32_t> const& tokens) {
  std::vector<Pair> rows;
  for (auto const token : tokens) rows.push_back({{}, {token}});
  return data::Collated{data::RaggedCollate{}, rows};
}

/// log p of each token after the sequences' last ones, from a prediction of whole sequences.
std::vector<double> log_shares(Predictor& predictor, Pair const& pair) {
  auto const whole = batch(std::vector<Pair>{pair}, data::RaggedCollate{});
  auto const logits = predictor.predict(whole.batch()).tokens.value;
  auto const* const last = logits.data + (logits.extent[0] - 1) * target_tokens;
  double sum = 0;
  for (Index c = 0; c < target_tokens; ++c) sum += std::exp(static_cast<double>(last[c]));
  std::vector<double> out;
  for (Index c = 0; c < target_tokens; ++c) out.push_back(static_cast<double>(last[c]) - std::log(sum));
  return out;
}

/// All hypotheses, by enumeration.
void enumerate(Predictor& predictor, Pair pair, double log_probability, BeamSearchOptions const& options,
               std::vector<Hypothesis>& all) {
  auto const length = std::ssize(pair.tokens);  // length of the hypothesis with one token more
  auto const shares = log_shares(predictor, pair);
  for (std::int32_t token = 0; token < target_tokens; ++token) {
    if (std::count(options.suppressed.begin(), options.suppressed.end(), token) > 0) continue;
    auto const sum = log_probability + shares[static_cast<std::size_t>(token)];
    auto longer = pair;
    if (token != end_token) longer.tokens.push_back(token);
    if (token != end_token && length < options.max_length) {
      enumerate(predictor, longer, sum, options, all);
      continue;
    }
    auto const score = sum / std::pow(static_cast<double>(length), options.length_penalty);
    all.push_back({{longer.tokens.begin() + 1, longer.tokens.end()}, sum, score, token == end_token});
  }
}

/// All hypotheses, best first.
std::vector<Hypothesis> enumerated(Predictor& predictor, Pair const& pair, BeamSearchOptions const& options) {
  std::vector<Hypothesis> all;
  enumerate(predictor, pair, 0, options, all);
  std::sort(all.begin(), all.end(), [](auto const& a, auto const& b) { return a.score > b.score; });
  return all;
}

}  // namespace

TEST_CASE("a beam of all hypotheses finds the best by enumeration, padded and ragged") {
  auto search = predictor(), whole = predictor();
  int unfinished = 0, lengths[6] = {};
  for (double const penalty : {0.0, 0.7, 1.0, 2.0}) {
    BeamSearchOptions const options{.beam = 400, .length_penalty = penalty, .max_length = 4, .end = end_token};
    auto const found = train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(), options, next);
    auto const padded = train::beam_search(search, batch(pairs(), data::PadCollate{}).batch(), options, next);
    REQUIRE(found.size() == pairs().size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const best = enumerated(whole, pairs()[i], options).front();
      CAPTURE(i);
      CHECK(found[i].tokens == best.tokens);
      CHECK(found[i].ended == best.ended);
      CHECK(found[i].log_probability == doctest::Approx(best.log_probability).epsilon(1e-6));
      CHECK(found[i].score == doctest::Approx(best.score).epsilon(1e-6));
      CHECK(padded[i].tokens == found[i].tokens);
      unfinished += !best.ended;
      ++lengths[best.tokens.size()];
    }
  }
  CHECK(unfinished > 0);  // and the samples are not all equal
  CHECK(std::count(std::begin(lengths), std::end(lengths), 0) < 4);
}

TEST_CASE("without a length penalty a sufficiently wide beam finds the best, and a narrow one ends early") {
  auto search = predictor(), whole = predictor();
  for (Index const beam : {1, 2, 3, 8, 40}) {
    BeamSearchOptions const options{.beam = beam, .length_penalty = 0, .max_length = 5, .end = end_token};
    auto const found = train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(), options, next);
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto const best = enumerated(whole, pairs()[i], options).front();
      CHECK(found[i].score <= best.score * (1 - 1e-6));  // the score is negative
      if (beam >= 40) CHECK(found[i].tokens == best.tokens);
      Pair read = pairs()[i];  // its log probability is its tokens'
      double sum = 0;
      for (auto const token : found[i].tokens) {
        sum += log_shares(whole, read)[static_cast<std::size_t>(token)];
        read.tokens.push_back(token);
      }
      if (found[i].ended) sum += log_shares(whole, read)[end_token];
      CHECK(found[i].log_probability == doctest::Approx(sum).epsilon(1e-6));
    }
  }
}

TEST_CASE("a beam of one writes the most likely token each time, and rows are independent") {
  auto search = predictor(), whole = predictor();
  BeamSearchOptions const options{.beam = 1, .max_length = 7, .end = end_token};
  auto const found = train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(), options, next);
  for (std::size_t i = 0; i < found.size(); ++i) {
    auto read = pairs()[i];
    bool ended = false;
    while (std::ssize(read.tokens) <= options.max_length) {
      auto const shares = log_shares(whole, read);
      auto const token = static_cast<std::int32_t>(std::max_element(shares.begin(), shares.end()) - shares.begin());
      if ((ended = token == end_token)) break;
      read.tokens.push_back(token);
    }
    CHECK(found[i].tokens == std::vector<std::int32_t>(read.tokens.begin() + 1, read.tokens.end()));
    CHECK(found[i].ended == ended);
    auto const alone =
        train::beam_search(search, batch(std::vector{pairs()[i]}, data::RaggedCollate{}).batch(), options, next);
    CHECK(alone[0].tokens == found[i].tokens);
    CHECK(alone[0].log_probability == found[i].log_probability);
  }
}

TEST_CASE("the n-best list of a beam of all hypotheses has all of them, best first, without suppressed tokens") {
  auto search = predictor(), whole = predictor();
  for (auto const& suppressed : {std::vector<std::int32_t>{}, {3}, {0, 1, 77, -1}, {end_token}}) {
    BeamSearchOptions options{
        .beam = 400, .length_penalty = 0.7, .max_length = 4, .end = end_token, .suppressed = suppressed};
    auto const prompts = batch(pairs(), data::RaggedCollate{});
    auto found = train::beam_search_n_best(search, prompts.batch(), options, next);
    REQUIRE(found.size() == pairs().size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      auto all = enumerated(whole, pairs()[i], options);
      REQUIRE(found[i].size() == all.size());
      for (std::size_t k = 0; k < all.size(); ++k)
        CHECK(found[i][k].score == doctest::Approx(all[k].score).epsilon(1e-6));
      for (auto* const list : {&found[i], &all})  // scores may be equal
        std::sort(list->begin(), list->end(), [](auto const& a, auto const& b) { return a.tokens < b.tokens; });
      for (std::size_t k = 0; k < all.size(); ++k) {
        CHECK(found[i][k].tokens == all[k].tokens);
        CHECK(found[i][k].ended == all[k].ended);
        CHECK(found[i][k].score == doctest::Approx(all[k].score).epsilon(1e-6));
      }
    }
    options.beam = 3;
    auto const three = train::beam_search_n_best(search, prompts.batch(), options, next);
    auto const one = train::beam_search(search, prompts.batch(), options, next);
    for (std::size_t i = 0; i < three.size(); ++i) {
      CHECK(three[i].size() == 3);
      CHECK(three[i][0].tokens == one[i].tokens);
      CHECK(three[i][0].score == one[i].score);
      CHECK(three[i][1].score >= three[i][2].score);
      CHECK(three[i][0].score >= three[i][1].score);
    }
  }
  CHECK(train::beam_search_n_best(search, batch(std::vector<Pair>{}, data::RaggedCollate{}).batch(), {}, next).empty());
}

TEST_CASE("longer prompts of one length are continued") {
  auto search = predictor();
  BeamSearchOptions const options{.beam = 3, .max_length = 4, .end = end_token};
  auto const first = train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(),
                                        {.beam = 1, .max_length = 1, .end = end_token}, next);
  auto longer = pairs();
  for (auto& pair : longer) pair.tokens.push_back(3);
  auto const found = train::beam_search(search, batch(longer, data::RaggedCollate{}).batch(), options, next);
  CHECK(found.size() == longer.size());
  CHECK(std::all_of(first.begin(), first.end(), [](auto const& each) { return each.tokens.size() <= 1; }));
}

TEST_CASE("empty batches, options out of range, and non-finite logits") {
  auto search = predictor();
  CHECK(train::beam_search(search, batch(std::vector<Pair>{}, data::RaggedCollate{}).batch(), {}, next).empty());
  auto const refuses = [&](BeamSearchOptions const& options, char const* what) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(), options, next)),
        doctest::Contains(what), ConfigError);
  };
  refuses({.beam = 0}, "beam is 0");
  refuses({.max_length = 0}, "max_length is 0");
  refuses({.length_penalty = -1}, "length_penalty is -1");
  refuses({.end = -1}, "end is -1");
  refuses({.suppressed = {0, 1, 2, 3}}, "suppressed has all tokens");
  std::vector<float> const broken(static_cast<std::size_t>(search.layout().size()), std::nanf(""));
  search.set(std::span(broken));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(train::beam_search(search, batch(pairs(), data::RaggedCollate{}).batch(), {}, next)),
      doctest::Contains("not finite"), DataError);
}

TEST_CASE("prompts of unequal lengths have the hypotheses of each alone") {
  auto all = pairs();
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t t = 0; t < 2 * i % 5; ++t)
      all[i].tokens.push_back(static_cast<std::int32_t>((i + t) % target_tokens));
  BeamSearchOptions const options{.beam = 3, .max_length = 5, .end = end_token};
  auto search = predictor();
  auto const check = [&](auto collate) {
    auto const together = train::beam_search(search, batch(all, collate).batch(), options, next);
    REQUIRE(together.size() == all.size());
    for (std::size_t i = 0; i < all.size(); ++i) {
      auto const alone = train::beam_search(search, batch(std::vector{all[i]}, collate).batch(), options, next);
      CHECK(together[i].tokens == alone[0].tokens);
      CHECK(together[i].log_probability == alone[0].log_probability);
    }
  };
  check(data::RaggedCollate{});
  check(data::PadCollate{});
}
