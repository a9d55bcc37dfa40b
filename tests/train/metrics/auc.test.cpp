// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/auc.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/layout_of.hpp>
#include <lockstep/nn/autograd/sequence.hpp>

#include "labelled.hpp"

using namespace lockstep;
using Batch = lockstep_test::LabelBatch;
using Sample = lockstep_test::Labelled;

namespace {
using Auc = train::Auc<Sample, int>;
static_assert(train::Metric<Auc>);

void add(Auc& metric, std::vector<float> logits, std::vector<int> const& labels, Index width = 1) {
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {std::ssize(labels), width}}, nullptr}, Batch{labels});
}
double auc(std::vector<float> const& logits, std::vector<int> const& labels) {
  Auc metric{&Sample::label};
  add(metric, logits, labels);
  return metric.value();
}
}  // namespace

TEST_CASE("the fraction of pairs whose positive one has the larger logit") {
  CHECK(auc({0.1f, 0.4f, 0.35f, 0.8f}, {0, 0, 1, 1}) == 0.75);  // scikit-learn's example
  CHECK(auc({-3, -2, -1, 1}, {0, 0, 1, 1}) == 1);
  CHECK(auc({3, 2, 1, -1}, {0, 0, 1, 1}) == 0);
  CHECK(auc({0, -0.0f}, {0, 1}) == 0.5);  // equal
  CHECK(auc({5, 5, 5}, {0, 1, 1}) == 0.5);
  float const infinity = std::numeric_limits<float>::infinity();
  CHECK(auc({-infinity, -1e30f, -1e-30f, 0, 1e-30f, 1e30f, infinity}, {0, 0, 0, 1, 1, 1, 1}) == 1);
  CHECK(auc({1, 2}, {1, 1}) == 0);  // no pair
  CHECK(auc({}, {}) == 0);
}

TEST_CASE("in any batches, and over shards, it equals the result over all pairs") {
  std::vector<float> logits;
  std::vector<int> labels;
  for (std::uint64_t i = 0; i < 300; ++i) {
    labels.push_back(uniform(Philox(1), i) < 0.3f ? 1 : 0);
    logits.push_back(static_cast<float>(bfloat16(4 * uniform(Philox(2), i) - 2 + static_cast<float>(labels.back()))));
  }
  double right = 0, pairs = 0;
  for (std::size_t i = 0; i < labels.size(); ++i)
    for (std::size_t j = 0; j < labels.size(); ++j)
      if (labels[i] == 1 && labels[j] == 0) {
        right += logits[i] > logits[j] ? 1 : logits[i] == logits[j] ? 0.5 : 0;
        pairs += 1;
      }
  Auc one{&Sample::label}, other{&Sample::label};
  for (std::size_t i = 0; i < labels.size(); ++i) add(i % 3 == 0 ? one : other, {logits[i]}, {labels[i]});
  auto const to = one.totals();
  std::transform(to.begin(), to.end(), other.totals().begin(), to.begin(), std::plus{});
  CHECK(one.value() == right / pairs);
  CHECK(std::string(one.name()) == "auc");
}

TEST_CASE("the order of close logits counts: 1 % of clicks, and logits of equal bfloat16 values") {
  std::vector<float> logits;
  std::vector<int> labels;
  for (int i = 0; i < 1000; ++i) {
    labels.push_back(i % 2);
    logits.push_back(i % 2 == 0 ? -4.60f : -4.59f);
  }
  CHECK(auc(logits, labels) == 1);
  CHECK(auc({1, std::nextafter(1.0f, 2.0f)}, {0, 1}) == 1);
  Auc first{&Sample::label}, second{&Sample::label};
  add(first, {1.0f}, {0});
  add(second, {std::nextafter(1.0f, 2.0f)}, {1});
  auto const to = first.totals();
  std::transform(to.begin(), to.end(), second.totals().begin(), to.begin(), std::plus{});
  CHECK(first.value() == 0.5);  // rounded, without the samples of the second
  first.add_samples(second.samples());
  CHECK(first.value() == 1);
}

TEST_CASE("tokens of sequences count, padding does not; inputs other than logits are refused") {
  std::vector<float> logits{1, 9, 2, 3};
  std::vector<std::int32_t> const lengths{1, 2};
  std::vector<Index> const positions{0, 1};
  nn::Sequence<float, HostSpace> const sequences{
      {{logits.data(), {4, 1}}, nullptr},
      kernel::SequenceLayout<HostSpace>::padded(2, {lengths.data(), {2}}, {positions.data(), {2}})};
  Auc metric{&Sample::label};
  metric.add(sequences, Batch{{0, 0, 0, 1}});
  CHECK(metric.value() == 1);
  CHECK_THROWS_WITH_AS(add(metric, {1, 2}, {1}, 2), doctest::Contains("the model predicts 2 numbers for each label"),
                       ShapeError);
  CHECK_THROWS_WITH_AS(add(metric, {std::numeric_limits<float>::quiet_NaN()}, {1}), doctest::Contains("that is nan"),
                       DataError);
}

TEST_CASE("labels may be missing, and may belong to tokens") {
  struct Optional {
    std::optional<int> label;
    std::vector<int> each;
  };
  std::vector<Optional> const samples{{0, {0, 1}}, {0, {}}, {1, {1}}, {std::nullopt, {0}}, {1, {}}};
  data::Collated const batch{data::PadCollate{}, samples};
  train::Auc clicked{&Optional::label};
  std::vector<float> logits{-2, -1, 1, 0, 2};
  clicked.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {5, 1}}, nullptr}, batch.batch());
  CHECK(clicked.value() == 1);
  auto const tokens = nn::layout_of<HostSpace>(batch.batch()[&Optional::each], batch.batch().positions());
  std::vector<float> padded(static_cast<std::size_t>(tokens.slots), 9);
  for (auto const& [slot, logit] : {std::pair{0, -1.f}, {1, 1.f}, {4, 2.f}, {6, 0.f}})
    padded[std::size_t(slot)] = logit;
  train::Auc of_tokens{&Optional::each};
  of_tokens.add(nn::Sequence<float, HostSpace>{{{padded.data(), {tokens.slots, 1}}, nullptr}, tokens}, batch.batch());
  CHECK(of_tokens.value() == 1);
}
