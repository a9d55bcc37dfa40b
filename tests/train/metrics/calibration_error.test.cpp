// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/calibration_error.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;

namespace {
using Calibration = train::CalibrationError<Labelled, int>;
static_assert(train::Metric<Calibration> && !Calibration::higher_is_better);

void add(Calibration& metric, std::vector<double> const& probabilities, std::vector<int> const& labels) {
  std::vector<float> logits;
  for (double const p : probabilities) logits.push_back(static_cast<float>(std::log(p / (1 - p))));
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {std::ssize(labels), 1}}, nullptr}, LabelBatch{labels});
}
}  // namespace

TEST_CASE("the mean difference of predicted and observed frequencies in intervals of the probability") {
  std::vector<double> const probabilities{0.25, 0.25, 0.55, 0.75, 0.75};
  std::vector<int> const labels{0, 0, 1, 1, 1};
  Calibration two{&Labelled::label, 2};  // torchmetrics' example
  add(two, probabilities, labels);
  CHECK(two.value() == doctest::Approx(0.29));
  Calibration first{&Labelled::label, 2}, second{&Labelled::label, 2};
  add(first, {0.25, 0.55, 0.75}, {0, 1, 1});
  add(second, {0.25, 0.75}, {0, 1});
  auto const to = first.totals();
  std::transform(to.begin(), to.end(), second.totals().begin(), to.begin(), std::plus{});
  CHECK(first.value() == doctest::Approx(0.29));
  Calibration one{&Labelled::label, 1};
  add(one, {0.2, 0.4, 0.9}, {0, 1, 1});
  CHECK(one.value() == doctest::Approx(0.5 / 3));
}

TEST_CASE("frequencies as predicted give 0, also at the ends") {
  Calibration metric{&Labelled::label};
  CHECK(std::isnan(metric.value()));
  add(metric, {0.25, 0.25, 0.25, 0.25, 0.5, 0.5}, {0, 1, 0, 0, 0, 1});
  CHECK(metric.value() == doctest::Approx(0));
  add(metric, {0, 1}, {0, 1});
  CHECK(metric.value() == doctest::Approx(0));
  CHECK(std::string(metric.name()) == "calibration_error");
}

TEST_CASE("one logit per class: the probability of the predicted class, and how often it is right") {
  auto const logit = [](double p) { return static_cast<float>(std::log(p)); };
  // torchmetrics' example of MulticlassCalibrationError, with 3 bins
  std::vector<double> const probabilities{0.25, 0.20, 0.55, 0.55, 0.05, 0.40, 0.10, 0.30, 0.60, 0.90, 0.05, 0.05};
  std::vector<float> logits;
  for (double const p : probabilities) logits.push_back(logit(p));
  Calibration metric{&Labelled::label, 3};
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {4, 3}}, nullptr}, LabelBatch{{0, 1, 2, 0}});
  CHECK(metric.value() == doctest::Approx(0.2));
}

TEST_CASE("invalid bins, labels that are not one of the classes and NaN are refused") {
  CHECK_THROWS_WITH_AS(Calibration(&Labelled::label, 0), "CalibrationError: there are 0 bins; choose from 1 to 65536",
                       ConfigError);
  CHECK_THROWS_AS(Calibration(&Labelled::label, 65537), ConfigError);
  Calibration metric{&Labelled::label};
  std::vector<float> logits{1, 2};
  CHECK_THROWS_WITH_AS(metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {1, 2}}, nullptr}, LabelBatch{{2}}),
                       "CalibrationError: a label is 2; the model predicts the classes 0 to 1", DataError);
  CHECK_THROWS_AS(add(metric, {std::numeric_limits<double>::quiet_NaN()}, {1}), DataError);
}
