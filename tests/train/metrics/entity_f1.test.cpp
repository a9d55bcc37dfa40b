// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/entity_f1.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

using namespace lockstep;

namespace {

struct Sentence {
  std::vector<std::int32_t> tags;
};
using Metric = train::EntityF1<Sentence, std::vector<std::int32_t>>;
static_assert(train::Metric<Metric>);

std::vector<std::string> const names{"O",     "B-PER", "I-PER", "B-LOC", "I-LOC", "E-PER",
                                     "S-PER", "E-LOC", "S-LOC", "L-LOC", "U-LOC"};
constexpr std::int32_t ignored = -100;

/// Returns the labels of tags that are separated by blanks; "-" is ignored.
std::vector<std::int32_t> tags(std::string const& text) {
  std::vector<std::int32_t> labels;
  for (std::size_t at = 0; at < text.size();) {
    auto const end = std::min(text.find(' ', at), text.size());
    auto const found = std::find(names.begin(), names.end(), text.substr(at, end - at));
    labels.push_back(found == names.end() ? ignored : static_cast<std::int32_t>(found - names.begin()));
    at = end + 1;
  }
  return labels;
}

template <class Scalar>
void add(Metric& metric, std::vector<std::string> const& found, std::vector<std::string> const& wanted, auto collate,
         std::size_t classes = names.size()) {
  std::vector<Sentence> sentences;
  for (auto const& text : wanted) sentences.push_back({tags(text)});
  data::Collated const held{collate, sentences};
  auto const& batch = held.batch();
  auto const layout = nn::layout_of<HostSpace>(batch[&Sentence::tags], batch.positions());
  std::vector<Scalar> logits(static_cast<std::size_t>(layout.slots) * classes,
                             Scalar(std::numeric_limits<float>::lowest()));
  for (std::size_t row = 0; row < found.size(); ++row) {
    auto slot = static_cast<std::size_t>(layout.start(static_cast<Index>(row)));
    for (auto const tag : tags(found[row])) logits[slot++ * classes + static_cast<std::size_t>(tag)] = Scalar(1.0f);
  }
  metric.add(
      nn::Sequence<Scalar, HostSpace>{{{logits.data(), {layout.slots, static_cast<Index>(classes)}}, nullptr}, layout},
      batch);
}
/// Returns correct entities, entities of the labels, and predicted entities.
std::array<double, 3> count(std::string const& found, std::string const& wanted) {
  Metric metric(&Sentence::tags, names, ignored);
  add<float>(metric, {found}, {wanted}, data::RaggedCollate{});
  auto const totals = metric.totals();
  return {totals[0], totals[1], totals[2]};
}
using Counts = std::array<double, 3>;

std::array<double, 3> values(Metric const& metric) {
  std::array<double, 3> out{};
  std::size_t at = 0;
  metric.values([&](std::string const& name, double value) {
    CHECK(name == std::array{"entity_f1", "entity_precision", "entity_recall"}[at]);
    out.at(at++) = value;
  });
  CHECK(at == 3);
  return out;
}

}  // namespace

TEST_CASE("an entity is found if its type and its extent are equal") {
  CHECK(count("B-PER I-PER O B-LOC", "B-PER I-PER O B-LOC") == Counts{2, 2, 2});
  CHECK(count("B-PER O O B-LOC", "B-PER I-PER O B-LOC") == Counts{1, 2, 2});      // too short
  CHECK(count("B-PER I-PER I-PER O", "B-PER I-PER O O") == Counts{0, 1, 1});      // too long
  CHECK(count("B-LOC I-LOC O O", "B-PER I-PER O O") == Counts{0, 1, 1});          // another type
  CHECK(count("B-PER B-PER O B-LOC", "B-PER I-PER O B-LOC") == Counts{1, 2, 3});  // two instead of one
  CHECK(count("O O O O", "B-PER I-PER O B-LOC") == Counts{0, 2, 0});
  CHECK(count("B-PER B-LOC", "B-PER B-LOC") == Counts{2, 2, 2});
}

TEST_CASE("entities of IOB1, IOBES and BILOU are read, and an I after another type begins one, as in conlleval") {
  CHECK(count("I-PER I-PER O I-LOC", "B-PER I-PER O B-LOC") == Counts{2, 2, 2});
  CHECK(count("B-PER E-PER S-PER S-LOC", "B-PER I-PER B-PER B-LOC") == Counts{3, 3, 3});
  CHECK(count("B-LOC I-LOC L-LOC U-LOC", "B-LOC I-LOC E-LOC S-LOC") == Counts{2, 2, 2});
  CHECK(count("B-PER I-LOC I-LOC O", "B-PER B-LOC I-LOC O") == Counts{2, 2, 2});
  CHECK(count("E-PER I-PER O S-PER I-PER", "B-PER B-PER O B-PER B-PER") == Counts{4, 4, 4});
  CHECK(count("E-PER E-PER", "B-PER B-PER") == Counts{2, 2, 2});
}

TEST_CASE("tokens with an ignored label are left out of labels and predictions") {
  CHECK(count("B-PER B-LOC I-PER O", "B-PER - I-PER -") == Counts{1, 1, 1});
  CHECK(count("B-PER O O I-PER", "B-PER - - I-PER") == Counts{1, 1, 1});
  CHECK(count("B-PER", "-") == Counts{0, 0, 0});
}

TEST_CASE("scores are those of the sums over sentences and batches, padded or ragged, with 16-bit logits too") {
  auto const check = [](auto scalar, auto collate) {
    using Scalar = decltype(scalar);
    Metric metric(&Sentence::tags, names);
    CHECK(values(metric) == std::array<double, 3>{0, 0, 0});
    add<Scalar>(metric, {"B-PER I-PER", "", "O O B-LOC"}, {"B-PER I-PER", "", "B-PER O B-LOC"}, collate);
    add<Scalar>(metric, {"B-LOC B-LOC B-LOC"}, {"O O O"}, collate);
    auto const [f1, precision, recall] = values(metric);
    CHECK(precision == doctest::Approx(2.0 / 5));
    CHECK(recall == doctest::Approx(2.0 / 3));
    CHECK(f1 == doctest::Approx(4.0 / 8));
  };
  check(float(), data::PadCollate{});
  check(float(), data::RaggedCollate{});
  check(bfloat16(), data::PadCollate{});
}

TEST_CASE("names that are no tags, labels without a tag and logits of another number are refused") {
  for (std::string const bad : {"NOUN", "B_PER", "B-", "X-PER", "", "b-PER"})
    CHECK_THROWS_WITH_AS(Metric(&Sentence::tags, {"O", bad}),
                         ("EntityF1: class 1 is named \"" + bad +
                          "\"; a tag is O, or B, I, E, L, S or U, a hyphen and the type of the entity, as B-PER")
                             .c_str(),
                         ConfigError);
  Metric metric(&Sentence::tags, names);
  CHECK_THROWS_WITH_AS(add<float>(metric, {"O"}, {"-"}, data::PadCollate{}),
                       "EntityF1: a label is -100; the tags are 0 to 10", DataError);
  CHECK_THROWS_WITH_AS(add<float>(metric, {"O"}, {"O"}, data::PadCollate{}, 4),
                       "EntityF1: the model predicts 4 numbers for each token, and 11 tags have names", ShapeError);
  std::vector<float> logits(names.size(), 0.0f);
  logits[3] = std::numeric_limits<float>::quiet_NaN();
  data::Collated const held{data::RaggedCollate{}, std::vector<Sentence>{{{0}}, {{}}}};
  auto const layout = nn::layout_of<HostSpace>(held.batch()[&Sentence::tags], held.batch().positions());
  nn::Sequence<float, HostSpace> prediction{{{logits.data(), {1, std::ssize(names)}}, nullptr}, layout};
  CHECK_THROWS_WITH_AS(metric.add(prediction, held.batch()), doctest::Contains("EntityF1: the model predicts a logit"),
                       DataError);
  data::Collated const others{data::RaggedCollate{}, std::vector<Sentence>{{{}}, {{0}}}};
  CHECK_THROWS_WITH_AS(metric.add(prediction, others.batch()),
                       doctest::Contains("EntityF1: sequence 0 has 1 tokens and 0 elements of the column"), ShapeError);
}
