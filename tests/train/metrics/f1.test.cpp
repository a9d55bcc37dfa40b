// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/f1.hpp>

#include <doctest/doctest.h>

#include <iterator>
#include <vector>

#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/variable.hpp>

#include "labelled.hpp"

using namespace lockstep;
using lockstep_test::LabelBatch;
using lockstep_test::Labelled;
static_assert(train::Metric<train::F1<Labelled, int>>);

namespace {
void add(auto& metric, std::vector<float> logits, std::vector<int> const& labels) {
  auto const rows = std::ssize(labels);
  metric.add(nn::Variable<float, 2, HostSpace>{{logits.data(), {rows, std::ssize(logits) / rows}}, nullptr},
             LabelBatch{labels});
}
/// Logits by which each row predicts one class of three.
std::vector<float> one_hot_predictions(std::vector<int> const& classes) {
  std::vector<float> logits(3 * classes.size());
  for (std::size_t i = 0; i < classes.size(); ++i) logits[3 * i + static_cast<std::size_t>(classes[i])] = 1;
  return logits;
}
}  // namespace

TEST_CASE("the mean of the classes' scores, over batches, is scikit-learn's f1_score with average macro") {
  // labels 0 1 2 0 1 2, predicted 0 2 1 0 0 1: class 0 has the score 0.8, the others 0
  train::F1 f1{&Labelled::label, 3};
  add(f1, one_hot_predictions({0, 2}), {0, 1});
  add(f1, one_hot_predictions({1, 0, 0, 1}), {2, 0, 1, 2});
  CHECK(f1.value() == doctest::Approx(0.8 / 3));
  CHECK(f1.totals().size() == 9);
  train::F1 all{&Labelled::label, 3};
  add(all, one_hot_predictions({2, 1, 0}), {2, 1, 0});
  CHECK(all.value() == 1);
}

TEST_CASE("absent classes do not count, nor do ignored labels; a single logit decides between two") {
  train::F1 absent{&Labelled::label, 3, -1};
  add(absent, one_hot_predictions({0, 1, 2}), {0, 1, -1});
  CHECK(absent.value() == 1);
  train::F1 two{&Labelled::label, 2};
  add(two, {-1, 2, 3, -4}, {0, 1, 0, 0});  // class 0: 2 * 2 / (3 + 2); class 1: 2 * 1 / (1 + 2)
  CHECK(two.value() == doctest::Approx((4.0 / 5 + 2.0 / 3) / 2));
  CHECK(train::F1{&Labelled::label, 2}.value() == 0);
}

TEST_CASE("labels and predictions of other classes are refused") {
  train::F1 f1{&Labelled::label, 3};
  CHECK_THROWS_WITH_AS(add(f1, {0, 1}, {1}), "F1: the model predicts 2 numbers for each label, and there are 3 classes",
                       ShapeError);
  CHECK_THROWS_WITH_AS(add(f1, one_hot_predictions({0}), {3}), "F1: a label is 3; the classes are 0 to 2", DataError);
  CHECK_THROWS_WITH_AS(train::F1(&Labelled::label, 1), "F1: there are 1 classes; it takes at least 2", ConfigError);
}
