// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/prediction/continue_tokens.hpp>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/embedding/fused_embedding.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/transformer/transformer_encoder.hpp>
#include <lockstep/train/prediction/predictor.hpp>

#include "translator.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index vocabulary = 11, length = 6;
struct Piece {
  std::vector<std::int32_t> tokens;
};
class Language {
 public:
  explicit Language(bool causal)
      : layers_{{.layers = 1, .width = 8, .heads = 2, .feed_forward = 12, .causal = causal}} {}
  void visit(auto&& each) { each("embedding", embedding_), each("layers", layers_), each("head", head_); }
  auto predict(auto& context, auto const& batch) const {
    auto const x = embedding_.forward(context, batch[&Piece::tokens], batch.positions());
    return head_.forward(context, layers_.forward(context, x));
  }

 private:
  nn::FusedEmbedding embedding_{{.vocabulary = vocabulary, .length = length, .width = 8}};
  nn::TransformerEncoder layers_;
  nn::Linear head_{8, vocabulary};
};
using Tokens = std::vector<std::int32_t>;

train::Predictor<Language> predictor(bool causal = true) {
  Language model(causal);
  auto const values = translator_parameters(nn::ParameterLayout::of(model).size());
  return {model, std::span(values)};
}
auto batch_of(Tokens tokens) { return data::Collated{data::PadCollate{}, std::vector<Piece>{{std::move(tokens)}}}; }

/// Continues the text by predictions of whole windows.
Tokens by_windows(Tokens text, Philox const& random, train::ContinueOptions const& options) {
  auto whole = predictor();
  Index first = std::max<Index>(0, std::ssize(text) - length);
  for (Index k = 0; k < options.count; ++k) {
    if (std::ssize(text) - first > length) first = std::ssize(text) - length / 2;
    auto const collated = batch_of(Tokens(text.begin() + first, text.end()));
    auto const logits = whole.predict(collated.batch());
    text.push_back(train::draw_token(logits, std::ssize(text) - first - 1,
                                     uniform(random, static_cast<std::uint64_t>(k)), options.draw));
  }
  return text;
}

}  // namespace

TEST_CASE("a text is continued as by predictions of whole windows, which move on by half of their length") {
  auto own = predictor();
  for (double const temperature : {0.0, 0.7, 1.5})
    for (Tokens const& prompt : {Tokens{3}, Tokens{1, 2, 3, 4, 5, 6}, Tokens{9, 8, 7, 6, 5, 4, 3, 2, 1}}) {
      train::ContinueOptions const options{
          .count = 20, .longest = length, .draw = {.temperature = temperature, .top_k = 5}};
      auto const text = train::continue_tokens(own, prompt, Philox(7), options, batch_of);
      CHECK(text == by_windows(prompt, Philox(7), options));
      CHECK(text.size() == prompt.size() + 20);
      if (temperature > 1) CHECK(text != train::continue_tokens(own, prompt, Philox(8), options, batch_of));
    }
}

TEST_CASE("the end token ends the text, and without a limit the model sees all of it") {
  auto own = predictor();
  train::ContinueOptions options{.count = 5};
  auto const five = train::continue_tokens(own, {3}, Philox(7), options, batch_of);
  CHECK(five == by_windows({3}, Philox(7), options));
  options.end = five[2];
  auto const ended = train::continue_tokens(own, {3}, Philox(7), options, batch_of);
  auto const at = std::find(five.begin() + 1, five.end(), five[2]);
  CHECK(ended == Tokens(five.begin(), at + 1));
  options.count = 0;
  CHECK(train::continue_tokens(own, {3, 4}, Philox(7), options, batch_of) == Tokens{3, 4});
}

TEST_CASE("a prompt without tokens, options out of range and a model that looks ahead are refused") {
  auto own = predictor();
  auto const refuses = [&](auto& of, Tokens prompt, train::ContinueOptions const& options, char const* why) {
    CHECK_THROWS_WITH_AS(static_cast<void>(train::continue_tokens(of, std::move(prompt), Philox(7), options, batch_of)),
                         doctest::Contains(why), ConfigError);
  };
  refuses(own, {}, {}, "continue_tokens: the prompt has no tokens");
  refuses(own, {1}, {.count = -1}, "continue_tokens: count -1, longest 0");
  refuses(own, {1}, {.longest = -2}, "longest -2; both must be at least 0");
  refuses(own, {1}, {.draw = {.top_p = 0}}, "draw_token: temperature 1, top_k 0, top_p 0");
  auto ahead = predictor(false);
  refuses(ahead, {1, 2}, {}, "causal");
  CHECK(train::continue_tokens(own, {3}, Philox(7), {.count = 3, .longest = 1}, batch_of).size() == 4);
}
