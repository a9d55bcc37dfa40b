// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/prediction/prompt_batch.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/train/prediction/beam_search.hpp>
#include <lockstep/train/prediction/continue_tokens.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include "translator.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index vocabulary = 11, length = 9;
using Tokens = std::vector<std::int32_t>;
struct Piece {
  Tokens tokens;
};
class Language {
 public:
  void visit(auto&& each) { each("embedding", embedding_), each("layers", layers_), each("head", head_); }
  auto predict(auto& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Piece::tokens], batch.positions());
    return head_.forward(context, layers_.forward(context, x));
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = vocabulary, .length = length, .width = 8}};
  nn::TransformerEncoder layers_{{.layers = 2, .width = 8, .heads = 2, .feed_forward = 12, .causal = true}};
  nn::Linear head_{8, vocabulary};
};

train::Predictor<Language> predictor() {
  Language model;
  auto const values = translator_parameters(nn::ParameterLayout::of(model).size());
  return {model, std::span(values)};
}
auto batch_of(std::vector<train::PromptTokens> const& rows) {
  std::vector<Piece> samples;
  for (auto const& row : rows) samples.push_back({row.tokens});
  return data::Collated{data::RaggedCollate{}, samples};
}
Tokens alone(train::Prompt const& prompt) {
  auto own = predictor();
  return train::continue_tokens(own, prompt.tokens, prompt.random, prompt.options, [](Tokens tokens) {
    return data::Collated{data::RaggedCollate{}, std::vector<Piece>{{std::move(tokens)}}};
  });
}

/// Prompts of 1 to 12 tokens with options of their own.
std::vector<train::Prompt> prompts() {
  std::vector<train::Prompt> all;
  for (std::size_t i = 0; i < 9; ++i) {
    auto& prompt = all.emplace_back();
    for (std::size_t t = 0; t <= 5 * i % 12; ++t)
      prompt.tokens.push_back(static_cast<std::int32_t>((3 * i + t * t) % vocabulary));
    prompt.options = {.count = static_cast<Index>(7 * i % 20),
                      .longest = length,
                      .draw = {.temperature = i % 3 == 0 ? 0 : 0.5 * static_cast<double>(i),
                               .top_k = static_cast<Index>(i % 4),
                               .top_p = i % 2 == 0 ? 1 : 0.9}};
    if (i % 2 == 0) prompt.options.end = 4;
    if (i % 3 == 1) prompt.options.stops = {7, 2};
    prompt.random = Philox(i / 2);  // two texts with the same numbers
  }
  return all;
}

}  // namespace

TEST_CASE("each text is continued as alone, for any number of texts at a time") {
  auto const all = prompts();
  std::vector<Tokens> expected;
  for (auto const& prompt : all) expected.push_back(alone(prompt));
  CHECK(std::any_of(all.begin(), all.end(), [](auto const& each) { return each.tokens.size() > length; }));
  for (Index const together : {1, 2, 4, 32}) {
    auto own = predictor();
    CHECK(train::continue_prompts(own, all, batch_of, together) == expected);
    CHECK(own.sequences() == 0);  // nothing is kept
  }
  auto reversed = all;
  std::reverse(reversed.begin(), reversed.end());
  std::reverse(expected.begin(), expected.end());
  auto own = predictor();
  CHECK(train::continue_prompts(own, reversed, batch_of) == expected);
}

TEST_CASE("tokens arrive one by one, and the caller can end a text") {
  auto own = predictor();
  std::vector<train::Prompt> const all{{.tokens = {3, 1}, .options = {.count = 5}, .random = Philox(1)},
                                       {.tokens = {5}, .options = {.count = 3}, .random = Philox(2)},
                                       {.tokens = {8, 8, 8}, .options = {.count = 6}, .random = Philox(3)}};
  std::vector<train::NewToken> seen;
  auto const texts = train::continue_prompts(own, all, batch_of, 2, [&](train::NewToken const& next) {
    seen.push_back(next);
    return next.prompt != 0 || std::ssize(seen) < 3;
  });
  auto const first = alone(all[0]);
  CHECK(texts[0] == Tokens(first.begin(), first.begin() + 4));  // after its second token, the third of all
  CHECK(texts[1] == alone(all[1]));
  CHECK(texts[2] == alone(all[2]));
  REQUIRE(seen.size() == 2 + 3 + 6);
  std::vector<Index> order;
  for (auto const& next : seen) order.push_back(next.prompt);
  CHECK(order == std::vector<Index>{0, 1, 0, 1, 2, 1, 2, 2, 2, 2, 2});
  CHECK(seen[5].ending == train::Ending::count);
  CHECK(seen[4].ending == train::Ending::none);
  auto stopped = all[2];
  stopped.options.stops = {seen[7].token};
  std::vector<train::Ending> endings;
  auto const shorter = train::continue_prompts(own, {stopped}, batch_of, 1,
                                               [&](train::NewToken const& next) { endings.push_back(next.ending); });
  CHECK(shorter[0].back() == seen[7].token);
  CHECK(endings.back() == train::Ending::stopped);
  CHECK(shorter[0].size() < texts[2].size());
}

TEST_CASE("texts are added while others run, and ended ones cost no work") {
  auto own = predictor();
  std::vector<std::size_t> passes;
  train::PromptBatch batch(own, [&](auto const& rows) {
    passes.push_back(rows.size());
    return batch_of(rows);
  });
  std::vector<Tokens> texts;
  auto const add = [&](Tokens tokens, Index count) {
    texts.push_back(tokens);
    return batch.add({std::move(tokens), {.count = count}, Philox(9)});
  };
  auto const step = [&] {
    batch.step(
        [&](train::NewToken const& next) { texts[static_cast<std::size_t>(next.prompt)].push_back(next.token); });
  };
  CHECK(add({1, 2, 3}, 3) == 0);
  CHECK(add({4}, 1) == 1);
  CHECK(add({4}, 0) == 2);
  step();
  CHECK(passes == std::vector<std::size_t>{2});
  CHECK(batch.running() == 1);
  CHECK(own.sequences() == 1);
  CHECK(add({6, 5}, 4) == 3);
  step();
  CHECK(passes == std::vector<std::size_t>{2, 1, 1});
  while (!batch.done()) step();
  CHECK(passes == std::vector<std::size_t>{2, 1, 1, 2, 1, 1});
  CHECK(own.sequences() == 0);
  CHECK(texts[0] == alone({{1, 2, 3}, {.count = 3}, Philox(9)}));
  CHECK(texts[1] == alone({{4}, {.count = 1}, Philox(9)}));
  CHECK(texts[2] == Tokens{4});
  CHECK(texts[3] == alone({{6, 5}, {.count = 4}, Philox(9)}));
}

TEST_CASE("invalid prompts and options are refused before any work, and others continue after an error") {
  auto own = predictor();
  int passes = 0;
  auto const counting = [&](std::vector<train::PromptTokens> const& rows) {
    ++passes;
    return batch_of(rows);
  };
  auto const refuses = [&](train::Prompt const& bad, std::string const& why) {
    CHECK_THROWS_WITH_AS(
        static_cast<void>(train::continue_prompts(own, {{.tokens = {1}, .options = {.count = 2}}, bad}, counting)),
        doctest::Contains(why.c_str()), ConfigError);
    CHECK(passes == 0);
  };
  refuses({}, "the prompt has no tokens (text 1)");
  refuses({.tokens = {1}, .options = {.draw = {.top_p = 1.5}}}, "top_p 1.5");
  refuses({.tokens = {1}, .options = {.draw = {.temperature = -1}}}, "temperature -1");
  refuses({.tokens = {1}, .options = {.stops = {3, -2}}}, "2 stops; they must be tokens of the vocabulary");
  refuses({.tokens = {1}, .options = {.end = -2}}, "end -2");
  refuses({.tokens = {1}, .options = {.count = -1}}, "count -1");
  CHECK_THROWS_WITH_AS(train::PromptBatch(own, counting, 0), doctest::Contains("0 texts together"), ConfigError);

  int drawn = 0;
  for (train::ContinueOptions const& options :
       {train::ContinueOptions{.count = 2, .end = vocabulary}, {.count = 2, .stops = {1, vocabulary}}}) {
    CHECK_THROWS_WITH_AS(static_cast<void>(train::continue_prompts(own, {{.tokens = {1}}, {{1}, options, Philox(0)}},
                                                                   counting, 1, [&](auto const&) { ++drawn; })),
                         doctest::Contains("text 1 ends after token 11, but the vocabulary has 11 tokens"),
                         ConfigError);
    CHECK(drawn == 0);
  }

  train::PromptBatch batch(own, batch_of);
  Tokens text{1, 2};
  auto const step = [&] {
    batch.step([&](train::NewToken const& next) {
      if (next.prompt == 0) text.push_back(next.token);
    });
  };
  train::Prompt const good{text, {.count = 6}, Philox(3)};
  batch.add(good);
  step();
  CHECK_THROWS_WITH_AS(batch.add({{1}, {.stops = {vocabulary}}, Philox(0)}), doctest::Contains("ends after token 11"),
                       ConfigError);
  batch.add({{1, vocabulary}, {}, Philox(0)});
  CHECK_THROWS_WITH_AS(step(), doctest::Contains("has id 11 at position 1"), DataError);
  batch.add({Tokens(length + 1, 1), {}, Philox(0)});
  CHECK_THROWS_WITH_AS(step(), doctest::Contains("has 10 tokens; there are 9 positions"), DataError);
  while (!batch.done()) step();
  CHECK(text == alone(good));
}

TEST_CASE("a decoder continues prompts of unequal lengths, each with its encoder's input") {
  TinyTranslator const model;
  TinyTranslator for_layout;
  auto const values = translator_parameters(nn::ParameterLayout::of(for_layout).size());
  train::Predictor<TinyTranslator> own(model, std::span(values));
  auto all = pairs();
  std::vector<train::Prompt> given;
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t t = 0; t < i % 3; ++t) all[i].tokens.push_back(static_cast<std::int32_t>((i + t) % target_tokens));
    given.push_back({.tokens = all[i].tokens, .options = {.count = 5, .end = end_token, .draw = {.temperature = 0}}});
  }
  auto const found = train::continue_prompts(
      own, given,
      [&](std::vector<train::PromptTokens> const& rows) {
        std::vector<Pair> samples;
        for (auto const& row : rows) {
          auto const& source = all[static_cast<std::size_t>(row.prompt)].source;
          samples.push_back({row.begins ? source : Tokens{}, row.tokens});
        }
        return data::Collated{data::RaggedCollate{}, samples};
      },
      3);
  auto const next = [](Tokens const& tokens) {
    std::vector<Pair> rows;
    for (auto const token : tokens) rows.push_back({{}, {token}});
    return data::Collated{data::RaggedCollate{}, rows};
  };
  data::Collated const prompts{data::RaggedCollate{}, all};
  auto const greedy = train::beam_search(own, prompts.batch(), {.beam = 1, .max_length = 5, .end = end_token}, next);
  for (std::size_t i = 0; i < all.size(); ++i) {
    auto expected = all[i].tokens;
    expected.insert(expected.end(), greedy[i].tokens.begin(), greedy[i].tokens.end());
    if (greedy[i].ended) expected.push_back(end_token);
    CHECK(found[i] == expected);
  }
}
