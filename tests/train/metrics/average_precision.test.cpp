// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/average_precision.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;

namespace {
using AveragePrecision = train::AveragePrecision<Labelled, int>;
static_assert(train::Metric<AveragePrecision>);

void add(AveragePrecision& metric, std::vector<float> logits, std::vector<int> const& labels, Index width = 1) {
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {std::ssize(labels), width}}, nullptr},
             LabelBatch{labels});
}
double average_precision(std::vector<float> const& logits, std::vector<int> const& labels) {
  AveragePrecision metric{&Labelled::label};
  add(metric, logits, labels);
  return metric.value();
}
}  // namespace

TEST_CASE("the mean precision at the logits of positive labels") {
  CHECK(average_precision({0.1f, 0.4f, 0.35f, 0.8f}, {0, 0, 1, 1}) == doctest::Approx(5.0 / 6));  // scikit-learn's
  CHECK(average_precision({-3, -2, -1, 1}, {0, 0, 1, 1}) == 1);
  CHECK(average_precision({3, 2, 1, -1}, {0, 0, 1, 1}) == doctest::Approx((1.0 / 3 + 2.0 / 4) / 2));
  CHECK(average_precision({5, 5, 5, 5}, {0, 1, 0, 0}) == 0.25);  // constant: the share of positive labels
  CHECK(average_precision({0, -0.0f}, {0, 1}) == 0.5);
  CHECK(average_precision({1, 2}, {1, 1}) == 1);
  CHECK(average_precision({1, 2}, {0, 0}) == 0);
  CHECK(average_precision({}, {}) == 0);
}

TEST_CASE("over batches and ranks it equals the definition over all samples, by bits") {
  std::vector<float> logits;
  std::vector<int> labels;
  for (std::uint64_t i = 0; i < 300; ++i) {
    labels.push_back(uniform(Philox(1), i) < 0.1f ? 1 : 0);
    logits.push_back(std::round(30 * uniform(Philox(2), i)) / 30 + static_cast<float>(labels.back()) / 3);
  }
  double sum = 0, positives = 0;
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (labels[i] == 0) continue;
    double right = 0, above = 0;
    for (std::size_t j = 0; j < labels.size(); ++j)
      if (logits[j] >= logits[i]) right += labels[j], above += 1;
    sum += right / above;
    positives += 1;
  }
  AveragePrecision one{&Labelled::label}, other{&Labelled::label}, all{&Labelled::label};
  for (std::size_t i = 0; i < labels.size(); ++i) {
    add(i % 3 == 0 ? one : other, {logits[i]}, {labels[i]});
    add(all, {logits[i]}, {labels[i]});
  }
  auto const to = one.totals();
  std::transform(to.begin(), to.end(), other.totals().begin(), to.begin(), std::plus{});
  CHECK(one.value() == doctest::Approx(sum / positives).epsilon(0.02));  // logits rounded to bfloat16
  one.add_samples(other.samples());
  CHECK(one.value() == doctest::Approx(sum / positives));
  CHECK(one.value() == all.value());
  CHECK(std::string(one.name()) == "average_precision");
}

TEST_CASE("several logits and NaN are refused by name") {
  AveragePrecision metric{&Labelled::label};
  CHECK_THROWS_WITH_AS(add(metric, {1, 2}, {1}, 2),
                       "AveragePrecision: the model predicts 2 numbers for each label; it takes one logit", ShapeError);
  CHECK_THROWS_WITH_AS(add(metric, {std::numeric_limits<float>::quiet_NaN()}, {1}),
                       doctest::Contains("AveragePrecision: the model predicts a logit that is nan"), DataError);
}
