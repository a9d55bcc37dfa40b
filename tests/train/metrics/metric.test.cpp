// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/metric.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cstddef>
#include <limits>
#include <string>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/auc.hpp>
#include <lockstep/train/metrics/confusion_matrix.hpp>
#include <lockstep/train/metrics/f1.hpp>
#include <lockstep/train/metrics/head_metric.hpp>
#include <lockstep/train/metrics/mean_iou.hpp>
#include <lockstep/train/metrics/top_k_accuracy.hpp>

#include "labelled.hpp"

using namespace lockstep;

namespace {
struct Good {
  std::array<double, 1> sum{};
  std::span<double> totals() { return sum; }
  double value() const { return sum[0]; }
  char const* name() const { return "good"; }
};
struct Several {
  std::array<double, 2> sum{};
  std::span<double> totals() { return sum; }
  void values(auto const& each) const {
    for (std::size_t i = 0; i < sum.size(); ++i) each("of_" + std::to_string(i), sum[i]);
  }
  char const* name() const { return "several"; }
};
struct NoValue {
  std::span<double> totals() { return {}; }
  char const* name() const { return "none"; }
};
struct NoTotals {
  double value() const { return 0; }
  char const* name() const { return "bad"; }
};
struct NoName : Good {
  char const* name() const = delete;
};
}  // namespace

TEST_CASE("a metric has totals that add up, a value and a name") {
  CHECK(train::Metric<Good>);
  CHECK(train::Metric<Several>);
  CHECK_FALSE(train::Metric<NoValue>);
  CHECK_FALSE(train::Metric<NoTotals>);
  CHECK_FALSE(train::Metric<NoName>);
}

namespace {

using Sample = lockstep_test::Labelled;

/// Adds a batch of two rows, of which the second has the label 1.
template <class M>
void add(M metric, std::vector<float> logits) {
  nn::Variable<float, 2, HostSpace> const prediction{{logits.data(), {2, std::ssize(logits) / 2}}, nullptr};
  metric.add(prediction, lockstep_test::LabelBatch{{0, 1}});
}
template <class M>
void check_not_a_number(M const& metric, Index classes, bool may_ignore) {
  CAPTURE(metric.name());
  auto const count = static_cast<std::size_t>(2 * classes);
  for (std::size_t bad = 0; bad < count; ++bad) {
    std::vector<float> logits(count, 1);
    CHECK_NOTHROW(add(metric, logits));
    logits[bad] = std::numeric_limits<float>::infinity();  // larger than the others, and thus an answer
    CHECK_NOTHROW(add(metric, logits));
    logits[bad] = std::numeric_limits<float>::quiet_NaN();
    if (may_ignore && bad >= count / 2)
      CHECK_NOTHROW(add(metric, logits));  // a row whose label does not count
    else
      CHECK_THROWS_WITH_AS(add(metric, logits), doctest::Contains(": the model predicts a logit that is nan"),
                           DataError);
  }
}

}  // namespace

TEST_CASE("no metric takes a logit that is NaN for an answer, in any class") {
  for (Index const classes : {1, 2, 3}) {
    check_not_a_number(train::Accuracy{&Sample::label}, classes, false);
    check_not_a_number(train::Accuracy{&Sample::label, 1}, classes, true);
    if (classes == 1) check_not_a_number(train::Auc{&Sample::label}, classes, false);
    if (classes > 1) check_not_a_number(train::TopKAccuracy{&Sample::label, 2}, classes, false);
    if (classes > 1) check_not_a_number(train::F1{&Sample::label, classes}, classes, false);
    if (classes > 1) check_not_a_number(train::F1{&Sample::label, classes, 1}, classes, true);
    if (classes > 1) check_not_a_number(train::MeanIoU{&Sample::label, classes}, classes, false);
    if (classes > 1) check_not_a_number(train::ConfusionMatrix{&Sample::label, classes}, classes, false);
  }
  auto const head = train::HeadMetric{"x", [](auto const& all) { return all; }, train::Accuracy{&Sample::label}};
  check_not_a_number(head, 2, false);
}
