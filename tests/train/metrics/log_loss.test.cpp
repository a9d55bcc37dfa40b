// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/log_loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
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
using LogLoss = train::LogLoss<Labelled, int>;
static_assert(train::Metric<LogLoss> && !LogLoss::higher_is_better);

void add(LogLoss& metric, std::vector<float> logits, std::vector<int> const& labels) {
  auto const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}
double log_loss(std::vector<float> const& logits, std::vector<int> const& labels) {
  LogLoss metric{&Labelled::label};
  add(metric, logits, labels);
  return metric.value();
}
}  // namespace

TEST_CASE("the mean of -log of the label's probability") {
  std::vector<float> logits;
  for (double const p : {0.1, 0.9, 0.9, 0.1, 0.8, 0.2, 0.35, 0.65}) logits.push_back(static_cast<float>(std::log(p)));
  CHECK(log_loss(logits, {1, 0, 0, 1}) == doctest::Approx(0.21616187468057912));  // scikit-learn's example
  std::vector<float> differences;  // the same probabilities by a single logit
  for (std::size_t i = 0; i < logits.size(); i += 2) differences.push_back(logits[i + 1] - logits[i]);
  CHECK(log_loss(differences, {1, 0, 0, 1}) == doctest::Approx(0.21616187468057912));
  CHECK(log_loss({1, 2, 3}, {2}) == doctest::Approx(std::log(1 + std::exp(-1.0) + std::exp(-2.0))));
  CHECK(std::isnan(LogLoss{&Labelled::label}.value()));
  CHECK(std::string(LogLoss::name()) == "log_loss");
}

TEST_CASE("large logits keep their digits") {
  CHECK(log_loss({1000}, {0}) == 1000);
  CHECK(log_loss({-1000}, {1}) == 1000);
  CHECK(log_loss({-40}, {0}) == doctest::Approx(std::exp(-40.0)));
  CHECK(log_loss({1000, -1000}, {1}) == 2000);
}

TEST_CASE("batches add up, ignored labels are left out, and other labels are classes") {
  LogLoss metric{&Labelled::label, -1};
  add(metric, {0, 5}, {1, -1});
  add(metric, {0}, {0});
  CHECK(metric.value() == doctest::Approx(std::log(2.0)));
  CHECK_THROWS_WITH_AS(add(metric, {0}, {2}), "LogLoss: a label is 2; the model predicts the classes 0 to 1",
                       DataError);
  CHECK_THROWS_WITH_AS(add(metric, {0, 1, 2}, {3}), "LogLoss: a label is 3; the model predicts the classes 0 to 2",
                       DataError);
  CHECK_THROWS_WITH_AS(add(metric, {std::numeric_limits<float>::quiet_NaN()}, {1}), doctest::Contains("that is nan"),
                       DataError);
}
