// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/top_k_accuracy.hpp>

#include <doctest/doctest.h>

#include <iterator>
#include <string>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>
#include <lockstep/train/metrics/accuracy.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;
using TopK = train::TopKAccuracy<Labelled, int>;
static_assert(train::Metric<TopK>);

namespace {
void add(auto& metric, std::vector<float> logits, std::vector<int> const& labels) {
  auto const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}
}  // namespace

TEST_CASE("it is the fraction of labels whose logit is among the k largest") {
  std::vector<float> const logits{0.1f, 0.4f, 0.2f, 0.3f, 4, 3, 2, 1, -1, -1, -1, -1};
  std::vector<int> const labels{0, 2, 1};  // the 4th, the 3rd, and of equal ones the 2nd
  for (Index k = 1; k <= 5; ++k) {
    TopK metric{&Labelled::label, k};
    add(metric, logits, labels);
    CHECK(metric.value() == doctest::Approx((k >= 4 ? 1 : 0) / 3.0 + (k >= 3 ? 1 : 0) / 3.0 + (k >= 2 ? 1 : 0) / 3.0));
    CHECK(metric.name() == "top_" + std::to_string(k) + "_accuracy");
  }
  TopK one{&Labelled::label, 1};
  train::Accuracy accuracy{&Labelled::label};
  std::vector<int> const largest{1, 0, 0};
  add(one, logits, largest), add(accuracy, logits, largest);
  CHECK(one.value() == 1);
  CHECK(accuracy.value() == 1);
  CHECK(TopK{&Labelled::label, 2}.value() == 0);
}

TEST_CASE("ignored labels are left out, and other labels are classes") {
  TopK metric{&Labelled::label, 1, -1};
  add(metric, {0, 1, 0, 1}, {1, -1});
  CHECK(metric.value() == 1);
  CHECK_THROWS_WITH_AS(add(metric, {0, 1}, {2}), "TopKAccuracy: a label is 2; the model predicts the classes 0 to 1",
                       DataError);
  CHECK_THROWS_WITH_AS(TopK(&Labelled::label, 0), "TopKAccuracy: k is 0; it must be at least 1", ConfigError);
}
