// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/temperature.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/core/philox.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/train/metrics/log_loss.hpp>
#include <lockstep/train/prediction/predicted_class.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;

namespace {
using Temperature = train::Temperature<Labelled, int>;
static_assert(train::Metric<Temperature>);

void add(auto& metric, std::vector<float> logits, std::vector<int> const& labels) {
  Index const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}

/// Draws labels by the softmax of logits that are then multiplied by `factor`.
struct Drawn {
  std::vector<float> logits;
  std::vector<int> labels;

  Drawn(Index rows, Index classes, float factor) {
    for (Index row = 0; row < rows; ++row) {
      std::vector<float> own;
      for (Index c = 0; c < classes; ++c)
        own.push_back(2 * static_cast<float>(normal(Philox(1), static_cast<std::uint64_t>(row * classes + c))));
      auto const p = train::class_probabilities(TensorView<float const, 2, HostSpace>(own.data(), {1, classes}), 0);
      double rest = uniform(Philox(2), static_cast<std::uint64_t>(row));
      int label = 0;
      while (label + 1 < classes && rest >= p[static_cast<std::size_t>(label)])
        rest -= p[static_cast<std::size_t>(label++)];
      labels.push_back(label);
      for (float const x : own) logits.push_back(factor * x);
    }
  }
  double loss(double temperature) const {
    train::LogLoss<Labelled, int> metric{&Labelled::label};
    auto divided = logits;
    for (auto& x : divided) x = static_cast<float>(x / temperature);
    add(metric, divided, labels);
    return metric.value();
  }
};
}  // namespace

TEST_CASE("the temperature finds the factor of logits, and minimizes the loss") {
  for (float const factor : {0.3f, 1.0f, 5.0f}) {
    Drawn const drawn(4000, 6, factor);
    Temperature metric{&Labelled::label};
    add(metric, drawn.logits, drawn.labels);
    double const found = metric.value();
    CHECK(found == doctest::Approx(factor).epsilon(0.06));  // of 4000 drawn labels
    CHECK(drawn.loss(found) <= drawn.loss(found * 1.004));  // within 0.2 % of the minimum
    CHECK(drawn.loss(found) <= drawn.loss(found / 1.004));
  }
}

TEST_CASE("a single logit is the difference of two") {
  Drawn const two(500, 2, 3);
  std::vector<float> differences;
  for (std::size_t i = 0; i < two.labels.size(); ++i) differences.push_back(two.logits[2 * i + 1] - two.logits[2 * i]);
  Temperature both{&Labelled::label}, single{&Labelled::label};
  add(both, two.logits, two.labels);
  add(single, differences, two.labels);
  CHECK(single.value() == doctest::Approx(both.value()).epsilon(1e-5));
}

TEST_CASE("totals of parts add up") {
  Drawn const drawn(300, 3, 2);
  auto const cut = drawn.logits.begin() + 300;
  Temperature all{&Labelled::label}, first{&Labelled::label}, second{&Labelled::label};
  add(all, drawn.logits, drawn.labels);
  add(first, {drawn.logits.begin(), cut}, {drawn.labels.begin(), drawn.labels.begin() + 100});
  add(second, {cut, drawn.logits.end()}, {drawn.labels.begin() + 100, drawn.labels.end()});
  for (std::size_t i = 0; i < first.totals().size(); ++i) second.totals()[i] += first.totals()[i];
  CHECK(second.value() == doctest::Approx(all.value()).epsilon(1e-12));
}

TEST_CASE("the ends of the grid, no samples and ignored labels") {
  Temperature none{&Labelled::label}, right{&Labelled::label}, wrong{&Labelled::label}, ignored{&Labelled::label, -100};
  CHECK(none.value() == 1);
  CHECK(std::string(none.name()) == "temperature");
  add(right, {1, 0, 0, 5}, {0, 1});
  CHECK(right.value() == 1.0 / 16);
  add(wrong, {1, 0, 0, 5}, {1, 0});
  CHECK(wrong.value() == 16);
  float const never = -std::numeric_limits<float>::infinity();  // a class that a mask excludes
  Temperature masked{&Labelled::label}, without{&Labelled::label};
  add(masked, {1, 0, never, 0, 5, never, 2, 0, never}, {0, 1, 1});
  add(without, {1, 0, 0, 5, 2, 0}, {0, 1, 1});
  CHECK(masked.value() == without.value());
  add(ignored, {1, 0, 0, 5}, {-100, -100});
  CHECK(ignored.value() == 1);
  Temperature infinite{&Labelled::label};
  add(infinite, {1, 0, -never, 5}, {0, 1});
  CHECK(std::isnan(infinite.value()));
}

TEST_CASE("labels that are not classes and NaN are refused") {
  Temperature metric{&Labelled::label};
  CHECK_THROWS_WITH_AS(add(metric, {1, 2, 3}, {3}), "Temperature: a label is 3; the model predicts the classes 0 to 2",
                       DataError);
  CHECK_THROWS_AS(add(metric, {1, std::numeric_limits<float>::quiet_NaN()}, {1}), DataError);
}
