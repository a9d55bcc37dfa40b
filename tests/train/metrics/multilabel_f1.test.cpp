// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/multilabel_f1.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>

#include "multilabel.hpp"

using namespace lockstep;
using multilabel::add;
using multilabel::Mail;
static_assert(train::Metric<train::MultilabelF1<Mail, std::array<float, 3>>>);

namespace {

std::vector<std::string> const names{"a", "b", "c"};

std::map<std::string, double> values_of(auto const& metric) {
  std::map<std::string, double> out;
  metric.values([&](std::string const& name, double value) { out[name] = value; });
  return out;
}

// Labels, and logits whose signs are the predictions of scikit-learn's example below.
std::vector<Mail> const mails{{{1, 0, 1}, 0}, {{0, 1, 1}, 0}, {{1, 1, 0}, 0}, {{0, 0, 1}, 0}, {{1, 0, 0}, 0}};
std::vector<float> const logits{2, -1, 1, 0.5f, 3, -2, -1, 1, 1, -3, 2, 1, 1, -1, -1};

}  // namespace

TEST_CASE("F1, precision and recall are those of scikit-learn's precision_recall_fscore_support") {
  // y = [[1,0,1],[0,1,1],[1,1,0],[0,0,1],[1,0,0]], p = [[1,0,1],[1,1,0],[0,1,1],[0,1,1],[1,0,0]]
  train::MultilabelF1 metric{&Mail::tags, names};
  add(metric, {mails[0], mails[1]}, {logits.begin(), logits.begin() + 6});  // in two batches
  add(metric, {mails[2], mails[3], mails[4]}, {logits.begin() + 6, logits.end()});
  std::map<std::string, double> const expected{{"micro_f1", 12.0 / 17},  {"macro_f1", 0.7111111111111111},
                                               {"f1_a", 2.0 / 3},        {"precision_a", 2.0 / 3},
                                               {"recall_a", 2.0 / 3},    {"f1_b", 0.8},
                                               {"precision_b", 2.0 / 3}, {"recall_b", 1},
                                               {"f1_c", 2.0 / 3},        {"precision_c", 2.0 / 3},
                                               {"recall_c", 2.0 / 3}};
  auto const found = values_of(metric);
  CHECK(found.size() == expected.size());
  for (auto const& each : found) {
    INFO(each.first);
    CHECK(each.second == doctest::Approx(expected.at(each.first)));
  }
  CHECK(metric.totals().size() == 9);
}

TEST_CASE("a label is predicted above its threshold") {
  auto const predicted = [](std::vector<double> const& thresholds, float logit) {
    train::MultilabelF1 metric{&Mail::is_spam, {"spam"}, thresholds};
    add(metric, {{{}, 0}}, {logit});
    return metric.totals()[1] == 1;
  };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  CHECK(!predicted({}, 0));
  CHECK(predicted({}, 0.001f));
  CHECK(predicted({0.5}, 0.001f));
  CHECK(!predicted({0.5}, 0));
  CHECK(predicted({0.2}, -1.38f));  // log(0.2 / 0.8) = -1.386
  CHECK(!predicted({0.2}, -1.39f));
  CHECK(predicted({0}, -100));
  CHECK(!predicted({1}, 100));
  CHECK(predicted({0.5}, infinity));
  CHECK(!predicted({0.5}, -infinity));

  train::MultilabelF1 metric{&Mail::tags, names, {0.5, 0.99, 0.01}};
  add(metric, mails, logits);
  CHECK(metric.totals()[1] == 3);
  CHECK(metric.totals()[4] == 0);  // no logit is above 4.6
  CHECK(metric.totals()[7] == 5);  // all are above -4.6
}

TEST_CASE("a label that no row has and that is not predicted does not count; one that is missed counts 0") {
  train::MultilabelF1 metric{&Mail::tags, names};
  add(metric, {{{1, 0, 1}, 0}}, {1, -1, -1});
  auto found = values_of(metric);
  CHECK(found["macro_f1"] == 0.5);
  CHECK(found["micro_f1"] == doctest::Approx(2.0 / 3));
  for (auto const* name : {"f1_b", "precision_b", "recall_b"}) CHECK(std::isnan(found[name]));
  for (auto const* name : {"f1_c", "precision_c", "recall_c"}) CHECK(found[name] == 0);
  auto const none = values_of(train::MultilabelF1{&Mail::tags, names});
  CHECK(none.at("micro_f1") == 0);
  CHECK(none.at("macro_f1") == 0);
}

TEST_CASE("one logit and one name measure the class 1 of two") {
  train::MultilabelF1 metric{&Mail::is_spam, {"spam"}};
  add(metric, {{{}, 1}, {{}, 1}, {{}, 0}}, {1, -1, -1});
  auto found = values_of(metric);
  CHECK(found["f1_spam"] == doctest::Approx(2.0 / 3));
  CHECK(found["precision_spam"] == 1);
  CHECK(found["recall_spam"] == 0.5);
}

TEST_CASE("MultilabelF1: other labels, logits and thresholds are refused") {
  train::MultilabelF1 metric{&Mail::tags, names};
  CHECK_THROWS_WITH_AS(add(metric, {mails[0]}, {1, 2}),
                       "MultilabelF1: the model predicts 2 numbers for each row, and 3 labels have names; each label "
                       "needs one logit",
                       ShapeError);
  CHECK_THROWS_WITH_AS(add(metric, {{{0, 2, 1}, 0}}, {1, 2, 3}),
                       "MultilabelF1: label 1 of a row is 2; it must be 0 or 1", DataError);
  CHECK_THROWS_AS(add(metric, {mails[0]}, {1, NAN, 3}), DataError);
  using Ids = std::vector<std::string>;
  CHECK_THROWS_WITH_AS(train::MultilabelF1(&Mail::tags, Ids{}),
                       "MultilabelF1: there are no names; give one for each label", ConfigError);
  CHECK_THROWS_WITH_AS(train::MultilabelF1(&Mail::tags, names, {0.5, 0.5}),
                       "MultilabelF1: there are 2 thresholds and 3 names; give one threshold for each label, or none",
                       ConfigError);
  CHECK_THROWS_WITH_AS(train::MultilabelF1(&Mail::tags, names, {0.5, 1.5, 0.5}),
                       "MultilabelF1: the threshold of \"b\" is 1.5; it is a probability in [0, 1]", ConfigError);
}
