// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/f1_thresholds.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/philox.hpp>

#include "multilabel.hpp"

using namespace lockstep;
using multilabel::add;
using multilabel::Mail;
static_assert(train::Metric<train::F1Thresholds<Mail, std::array<float, 3>>>);

namespace {

double threshold_of(auto const& metric) {
  double threshold = -1;
  metric.values([&](std::string const& name, double value) {
    if (name == "threshold_spam") threshold = value;
  });
  return threshold;
}
double threshold_of(std::vector<float> const& logits, std::vector<int> const& labels) {
  train::F1Thresholds metric{&Mail::is_spam, {"spam"}};
  for (std::size_t i = 0; i < logits.size(); ++i) add(metric, {{{}, labels[i]}}, {logits[i]});
  return threshold_of(metric);
}
double logit_of(double probability) { return std::log(probability / (1 - probability)); }

double f1(std::vector<float> const& logits, std::vector<int> const& labels, double least) {
  double both = 0, all = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    bool const predicted = static_cast<double>(logits[i]) > least;
    both += predicted && labels[i] == 1;
    all += predicted + labels[i];
  }
  return 2 * both / all;
}

}  // namespace

TEST_CASE("the F1 score of the threshold is the largest of all thresholds between the logits") {
  for (std::uint64_t trial = 0; trial < 50; ++trial) {
    Philox const random(trial);
    std::vector<float> logits;
    std::vector<int> labels;
    for (std::uint64_t i = 0; i < 60; ++i) {  // in the middle of intervals, so that no two share one and differ
      auto const at = std::floor(uniform(random, 2 * i) * 200) / 32 - 3;
      logits.push_back(at + 0x1p-6f);
      labels.push_back(uniform(random, 2 * i + 1) < 0.3f + 0.1f * at ? 1 : 0);
    }
    labels[0] = 1;
    auto const chosen = threshold_of(logits, labels);
    double best = f1(logits, labels, -100);
    for (float const each : logits) best = std::max(best, f1(logits, labels, static_cast<double>(each)));
    CHECK(f1(logits, labels, chosen == 0 ? -100 : logit_of(chosen)) == best);
  }
}

TEST_CASE("the threshold is in the middle between the logits that it divides") {
  CHECK(logit_of(threshold_of({-1, 3}, {0, 1})) == doctest::Approx(1).epsilon(0.05));
  CHECK(threshold_of({-1, 3}, {1, 1}) == 0);
  CHECK(threshold_of({-1, 3}, {0, 0}) == 0.5);
  CHECK(threshold_of({}, {}) == 0.5);
  CHECK(logit_of(threshold_of({0, 1}, {0, 1})) == doctest::Approx(0.5).epsilon(0.05));
  CHECK(logit_of(threshold_of({-40, 40}, {0, 1})) == doctest::Approx(0).epsilon(0.05));  // beyond the intervals
}

TEST_CASE("each label has its threshold, and the totals of two metrics add up") {
  std::vector<std::string> const names{"ham", "spam", "list"};
  train::F1Thresholds one{&Mail::tags, names}, two{&Mail::tags, names};
  add(one, {{{0, 0, 1}, 0}, {{1, 0, 1}, 0}}, {-2, 4, 1, 1, -4, 2});
  add(two, {{{0, 1, 0}, 0}}, {-2, 6, 0});
  for (std::size_t i = 0; i < one.totals().size(); ++i) one.totals()[i] += two.totals()[i];
  std::vector<double> thresholds;
  one.values([&](std::string const&, double value) { thresholds.push_back(logit_of(value)); });
  REQUIRE(thresholds.size() == 3);
  CHECK(thresholds[0] == doctest::Approx(-0.5).epsilon(0.05));
  CHECK(thresholds[1] == doctest::Approx(5).epsilon(0.05));
  CHECK(thresholds[2] == doctest::Approx(0.5).epsilon(0.05));
}

TEST_CASE("F1Thresholds: other labels and logits are refused") {
  train::F1Thresholds metric{&Mail::tags, {"a", "b", "c"}};
  CHECK_THROWS_AS(add(metric, {{{}, 0}}, {1, 2}), ShapeError);
  CHECK_THROWS_WITH_AS(add(metric, {{{0, 0, -1}, 0}}, {1, 2, 3}),
                       "F1Thresholds: label 2 of a row is -1; it must be 0 or 1", DataError);
  CHECK_THROWS_AS(add(metric, {{{}, 0}}, {1, NAN, 3}), DataError);
  CHECK_THROWS_AS(train::F1Thresholds(&Mail::tags, std::vector<std::string>{}), ConfigError);
}
