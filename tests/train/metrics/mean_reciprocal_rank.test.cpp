// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/mean_reciprocal_rank.hpp>

#include <doctest/doctest.h>

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
using Rank = train::MeanReciprocalRank<Labelled, int>;
static_assert(train::Metric<Rank>);

void add(Rank& metric, std::vector<float> logits, std::vector<int> const& labels) {
  auto const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}
}  // namespace

TEST_CASE("it is the mean of 1 / rank of the label's logit") {
  Rank metric{&Labelled::label};
  CHECK(metric.value() == 0);
  add(metric, {0.1f, 0.4f, 0.2f, 0.3f, 4, 3, 2, 1}, {0, 2});  // the 4th, the 3rd
  add(metric, {-1, -1, -1, -1}, {1});                         // of equal ones the 2nd
  CHECK(metric.value() == doctest::Approx((1.0 / 4 + 1.0 / 3 + 1.0 / 2) / 3));
  CHECK(std::string(metric.name()) == "mean_reciprocal_rank");
}

TEST_CASE("ignored labels are left out, and other labels are classes") {
  Rank metric{&Labelled::label, -1};
  add(metric, {0, 1, 0, 1}, {0, -1});
  CHECK(metric.value() == 0.5);
  CHECK_THROWS_WITH_AS(add(metric, {0, 1}, {2}),
                       "MeanReciprocalRank: a label is 2; the model predicts the classes 0 to 1", DataError);
}
