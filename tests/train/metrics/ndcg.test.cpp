// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/ndcg.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <iterator>
#include <string>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;

namespace {
using Ndcg = train::Ndcg<Labelled, int>;
static_assert(train::Metric<Ndcg>);

void add(Ndcg& metric, std::vector<float> logits, std::vector<int> const& labels) {
  auto const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}
}  // namespace

TEST_CASE("it is the mean of 1 / log2(1 + rank) of labels whose rank is at most k") {
  std::vector<float> const logits{0.1f, 0.4f, 0.2f, 0.3f, 4, 3, 2, 1, -1, -1, -1, -1};
  std::vector<int> const labels{0, 2, 1};  // the 4th, the 3rd, and of equal ones the 2nd
  for (Index k = 1; k <= 5; ++k) {
    Ndcg metric{&Labelled::label, k};
    CHECK(metric.value() == 0);
    add(metric, logits, labels);
    double const sum =
        (k >= 4 ? 1 / std::log2(5) : 0) + (k >= 3 ? 1 / std::log2(4) : 0) + (k >= 2 ? 1 / std::log2(3) : 0);
    CHECK(metric.value() == doctest::Approx(sum / 3));
    CHECK(metric.name() == "ndcg_" + std::to_string(k));
  }
  Ndcg first{&Labelled::label, 10};
  add(first, {0, 1}, {1});
  CHECK(first.value() == 1);
}

TEST_CASE("ignored labels are left out, and other labels are classes") {
  Ndcg metric{&Labelled::label, 1, -1};
  add(metric, {0, 1, 0, 1}, {1, -1});
  CHECK(metric.value() == 1);
  CHECK_THROWS_WITH_AS(add(metric, {0, 1}, {2}), "Ndcg: a label is 2; the model predicts the classes 0 to 1",
                       DataError);
  CHECK_THROWS_WITH_AS(add(metric, {0, 1}, {1, 0}),
                       "Ndcg: a label is 1; the model predicts the classes 0 to 0; for one score for each document of "
                       "a query use train::GradedNdcg",
                       DataError);
  CHECK_THROWS_WITH_AS(Ndcg(&Labelled::label, 0), "Ndcg: k is 0; it must be at least 1", ConfigError);
}
