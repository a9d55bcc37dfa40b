// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/accuracy.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/variable.hpp>

using namespace lockstep;

namespace {
struct Sample {
  int label;
};
struct Batch {
  std::vector<int> labels;
  struct Column {
    TensorView<int const, 1, HostSpace> values;
  };
  Column operator[](int Sample::*) const { return {{labels.data(), {static_cast<Index>(labels.size())}}}; }
};
using Accuracy = train::Accuracy<Sample, int>;
static_assert(train::Metric<Accuracy>);

double accuracy(std::vector<float> logits, Index classes, std::vector<int> labels) {
  Accuracy metric{&Sample::label};
  nn::Variable<float, 2, HostSpace> const prediction{{logits.data(), {static_cast<Index>(labels.size()), classes}},
                                                     nullptr};
  metric.add(prediction, Batch{labels});
  return metric.value();
}
}  // namespace

TEST_CASE("accuracy is the share of rows whose largest logit is the label's") {
  CHECK(accuracy({1, 2, 3, 3, 2, 1, 0, 5, 0}, 3, {2, 0, 0}) == doctest::Approx(2.0 / 3));
  CHECK(accuracy({}, 3, {}) == 0);
  CHECK(accuracy({1, 1}, 2, {0}) == 1);  // the first of equals
  CHECK(accuracy({1, 1}, 2, {1}) == 0);
}

TEST_CASE("its totals add up over devices and ranks") {
  Accuracy metric{&Sample::label};
  CHECK(metric.value() == 0);
  metric.totals()[0] += 3;
  metric.totals()[1] += 4;
  CHECK(metric.value() == 0.75);
  CHECK(std::string(metric.name()) == "accuracy");
}
