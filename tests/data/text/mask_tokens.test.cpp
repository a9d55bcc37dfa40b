// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/text/mask_tokens.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/combine/transform.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>

using namespace lockstep;

namespace {

using Ids = std::vector<std::int32_t>;
struct Text {
  Ids tokens, places, labels;
};

constexpr std::int32_t begin = 1, end = 2, mask = 3;
constexpr Index vocabulary = 20;  // 0 to 3 are special, from 12 on ids continue a word

data::MaskTokens<Text> masker(data::MaskTokensOptions options = {}) {
  options.mask = mask;
  options.vocabulary = vocabulary;
  options.special = {0, begin, end};
  return {&Text::tokens, &Text::places, &Text::labels, options};
}
data::MaskTokens<Text> word_masker() {
  return masker({.share = 0.25, .continues_word = [](std::int32_t id) { return id >= 12; }});
}

/// Returns the masked text of each of `count` positions.
std::vector<Text> masked(data::MaskTokens<Text> const& function, Ids const& tokens, Index count) {
  std::vector<Text> out;
  for (Index position = 0; position < count; ++position) out.push_back(function({tokens, {7}, {7}}, {5, 0, position}));
  return out;
}

/// Whether `observed` of `trials` agrees with a probability, within five standard deviations of the binomial
/// distribution: a correct program fails once in 1.7 million numbers of a test, and the numbers are always the same.
bool agrees(Index observed, Index trials, double probability) {
  double const mean = static_cast<double>(trials) * probability;
  return std::abs(static_cast<double>(observed) - mean) <= 5 * std::sqrt(mean * (1 - probability));
}

std::string text_of(Text const& text) {
  std::string out;
  for (auto const* ids : {&text.tokens, &text.places, &text.labels}) {
    for (auto const id : *ids) out += std::to_string(id) + " ";
    out += "| ";
  }
  return out;
}

}  // namespace

TEST_CASE("15 % of the ordinary tokens, rounded, have a place and their id as label, and others stay") {
  for (std::size_t const ordinary : {1u, 2u, 9u, 10u, 11u, 31u, 32u, 33u, 100u}) {
    Ids tokens{begin};
    for (std::size_t i = 0; i < ordinary; ++i) tokens.push_back(static_cast<std::int32_t>(4 + i % 16));
    tokens.push_back(end);
    auto const wanted = std::max<std::size_t>(1, (15 * ordinary + 50) / 100);
    for (auto const& text : masked(masker(), tokens, 50)) {
      REQUIRE(text.tokens.size() == tokens.size());
      REQUIRE(text.places.size() == wanted);
      REQUIRE(text.labels.size() == wanted);
      CHECK(std::is_sorted(text.places.begin(), text.places.end(), std::less_equal<>()));  // no place twice
      auto restored = text.tokens;
      for (std::size_t i = 0; i < wanted; ++i) {
        auto const place = static_cast<std::size_t>(text.places[i]);
        CHECK(text.labels[i] == tokens[place]);
        CHECK(text.labels[i] > mask);  // never a special token
        CHECK((text.tokens[place] == mask || text.tokens[place] > mask));
        restored[place] = tokens[place];
      }
      CHECK(restored == tokens);
    }
  }
}

TEST_CASE("each set of places is equally frequent, and 80, 10 and 10 % become the mask, random tokens, or stay") {
  constexpr Index trials = 60000;
  constexpr std::int32_t word = 4;
  std::map<Ids, Index> sets;
  std::map<std::int32_t, Index> becomes;
  for (auto const& text : masked(masker({.share = 0.5}), {begin, word, word, end, word, word}, trials)) {
    ++sets[text.places];
    for (auto const place : text.places) ++becomes[text.tokens[static_cast<std::size_t>(place)]];
  }
  CHECK(sets.size() == 6);
  for (auto const& [places, count] : sets) {
    CHECK(agrees(count, trials, 1.0 / 6));
    for (auto const place : places) CHECK((place != 0 && place != 3));
  }
  CHECK(becomes.size() == 17);  // the mask, and ids 4 to 19
  CHECK(agrees(becomes[mask], 2 * trials, 0.8));
  CHECK(agrees(becomes[word], 2 * trials, 0.1 + 0.1 / 16));  // stays, or is drawn
  for (std::int32_t id = 5; id < vocabulary; ++id) CHECK(agrees(becomes[id], 2 * trials, 0.1 / 16));
}

TEST_CASE("chosen tokens are replaced independently of each other") {
  constexpr Index trials = 40000;
  std::array<std::array<Index, 2>, 2> both{};
  for (auto const& text : masked(masker({.share = 1, .mask_share = 0.5, .random_share = 0}), {4, 5}, trials))
    ++both[text.tokens[0] == mask][text.tokens[1] == mask];
  for (auto const& row : both)
    for (auto const count : row) CHECK(agrees(count, trials, 0.25));
}

TEST_CASE("whole words are masked together, as far as they fit into the number of tokens") {
  // Words: [1, 2), [2, 5), [6, 7), which continues a word only by its id, [7, 9), [9, 10), [10, 13): 11 tokens, of
  // which 3 are predicted.
  Ids const tokens{begin, 4, 5, 12, 13, end, 14, 6, 15, 7, 8, 12, 16};
  std::set<Ids> const expected{{1, 6, 9}, {2, 3, 4}, {10, 11, 12}, {1, 7, 8}, {6, 7, 8}, {7, 8, 9}};
  Ids const words{1, 2, 6, 7, 9, 10}, lengths{1, 3, 1, 2, 1, 3};
  std::map<Ids, double> probability;  // by the rule, over all orders of the words
  Ids order{0, 1, 2, 3, 4, 5};
  do {
    Ids places;
    for (auto const w : order)
      if (auto const k = static_cast<std::size_t>(w); std::ssize(places) + lengths[k] <= 3)
        for (std::int32_t i = 0; i < lengths[k]; ++i) places.push_back(words[k] + i);
    std::sort(places.begin(), places.end());
    probability[places] += 1.0 / 720;
  } while (std::next_permutation(order.begin(), order.end()));

  constexpr Index trials = 40000;
  std::map<Ids, Index> sets;
  for (auto const& text : masked(word_masker(), tokens, trials)) {
    ++sets[text.places];
    CHECK(text.places.size() == text.labels.size());
  }
  for (auto const& [places, count] : sets) CHECK(expected.contains(places));
  for (auto const& places : expected) {
    CAPTURE(places);
    CHECK(agrees(sets[places], trials, probability[places]));
  }
}

TEST_CASE("a text without a word that fits has no places") {
  for (auto const& text : masked(word_masker(), {begin, 4, 12, 13, end}, 20)) {  // a word of 3, and 1 is predicted
    CHECK(text.tokens == Ids{begin, 4, 12, 13, end});
    CHECK(text.places.empty());
    CHECK(text.labels.empty());
  }
  for (auto const& tokens : {Ids{}, Ids{begin, mask, end}})
    for (auto const& text : masked(masker(), tokens, 3)) {
      CHECK(text.tokens == tokens);
      CHECK(text.places.empty());
      CHECK(text.labels.empty());
    }
}

TEST_CASE("masks are equal for any number of ranks and workers and after resuming, and differ between epochs") {
  std::vector<Text> texts;
  for (std::int32_t i = 0; i < 60; ++i) {
    Ids tokens;
    for (std::int32_t k = 0; k < 5 + i % 30; ++k) tokens.push_back(4 + (i + 3 * k) % 16);
    texts.push_back({std::move(tokens), {}, {}});
  }
  data::Transform const dataset{data::InMemoryDataset{texts}, masker()};
  auto const loader_of = [&](Index batch, int workers, std::uint64_t seed = 5) {
    return data::DataLoader{dataset,
                            data::ShuffledSampler{.seed = 2},
                            data::RaggedCollate{},
                            {.batch_size = batch, .workers = workers, .seed = seed}};
  };
  using Samples = std::map<std::pair<Index, Index>, std::string>;  // by epoch and position
  auto const read = [](auto& loader, Index batches, Samples& out) {
    for (Index i = 0; i < batches; ++i) {
      auto const held = loader.next();
      for (auto const& batch : held.batches())
        for (Index row = 0; row < batch.rows(); ++row) {
          auto const ids = [&](auto member) {
            auto const of = batch[member][row];
            return Ids(of.begin(), of.end());
          };
          out[{held.epoch(), batch.positions()(row)}] =
              text_of({ids(&Text::tokens), ids(&Text::places), ids(&Text::labels)});
        }
    }
  };
  Samples expected;
  auto one = loader_of(12, 0);
  one.start({}, 0, 0, 2);
  read(one, 10, expected);
  REQUIRE(expected.size() == 120);
  for (int const ranks : {1, 2, 3})
    for (int const workers : {0, 1, 3}) {
      Samples found;
      for (int rank = 0; rank < ranks; ++rank) {
        auto loader = loader_of(12 / ranks, workers);
        loader.start({rank, 1, ranks}, 0, 0, 2);
        read(loader, 10, found);
      }
      CHECK(found == expected);
    }
  Samples rest;
  auto resumed = loader_of(4, 2);
  resumed.start({0, 3, 3}, 1, 2, 2);  // from the third step of the second epoch
  read(resumed, 3, rest);
  CHECK(rest.size() == 36);
  for (auto const& [at, text] : rest) CHECK(text == expected[at]);

  Samples other;
  auto seeded = loader_of(12, 0, 6);
  seeded.start({}, 0, 0, 1);
  read(seeded, 5, other);
  Index differing = 0;
  for (auto const& [at, text] : other) differing += text != expected[at];
  CHECK(differing > 50);

  auto const& function = masker();
  Text const text{Ids(40, 9), {}, {}};
  CHECK(function(text, {5, 0, 3}).places != function(text, {5, 1, 3}).places);  // another epoch
}

TEST_CASE("errors name the option or the token, and the rule") {
  data::MaskTokensOptions const good{.mask = 3, .vocabulary = 20};
  auto const refused = [&](auto change) {
    auto options = good;
    change(options);
    try {
      data::MaskTokens const function{&Text::tokens, &Text::places, &Text::labels, options};
    } catch (ConfigError const& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refused([](auto&) {}).empty());
  CHECK(refused([](auto& o) { o.mask = 20; }) ==
        "MaskTokens: .mask has the id 20, and .vocabulary is 20; ids are from 0 to .vocabulary - 1");
  CHECK(refused([](auto& o) { o.mask = -1; }).find(".mask has the id -1") != std::string::npos);
  CHECK(refused([](auto& o) { o.special = {0, 21}; }).find(".special has the id 21") != std::string::npos);
  for (double const share : {0.0, -0.1, 1.01, std::nan("")})
    CHECK(refused([=](auto& o) { o.share = share; }).find(".share is") != std::string::npos);
  CHECK(refused([](auto& o) { o.mask_share = 0.95; }) ==
        "MaskTokens: .mask_share is 0.95 and .random_share 0.1; they must be at least 0, and their sum at most 1");
  CHECK(refused([](auto& o) { o.random_share = -0.1; }).find(".random_share -0.1") != std::string::npos);
  CHECK(refused([](auto& o) {
          o.vocabulary = 2;
          o.mask = 1;
          o.special = {0};
        }).find("all 2 ids are special") != std::string::npos);

  data::MaskTokens const function{&Text::tokens, &Text::places, &Text::labels, good};
  CHECK_THROWS_WITH_AS(static_cast<void>(function({{4, 20}, {}, {}}, {})),
                       "MaskTokens: token 1 is 20, and .vocabulary is 20; ids are from 0 to .vocabulary - 1",
                       DataError);
  CHECK_THROWS_AS(static_cast<void>(function({{-1}, {}, {}}, {})), DataError);
}
