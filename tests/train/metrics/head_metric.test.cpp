// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/head_metric.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/confusion_matrix.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/line.hpp"

using namespace lockstep;

namespace {

template <class Logits>
struct Both {
  Logits one, other;
};
/// The line's logits, in both orders.
struct TwoHeads : line::Model {
  auto predict(auto& context, auto const& batch) const {
    auto const one = line::Model::predict(context, batch);
    auto other = context.template variable<2>({one.extent(0), 2});
    for (Index row = 0; row < one.extent(0); ++row)
      for (Index c = 0; c < 2; ++c) other.value(row, c) = one.value(row, 1 - c);
    return Both<decltype(other)>{one, other};
  }
};
constexpr auto one = [](auto const& heads) { return heads.one; };
constexpr auto other = [](auto const& heads) { return heads.other; };

/// The absolute value of logits.
struct Size {
  static constexpr bool higher_is_better = false;
  double sum = 0;
  void add(auto const& prediction, auto const&) {
    for (float const each : prediction.value.span()) sum += static_cast<double>(each);
  }
  std::span<double> totals() { return {&sum, 1}; }
  [[nodiscard]] double value() const { return sum; }
  static char const* name() { return "size"; }
};

}  // namespace

TEST_CASE("a metric of one head has the head's name as a prefix") {
  auto loader = line::loader(8, 2);
  Trainer trainer{TwoHeads{}, optim::SGD{}, parallel::DataParallel{.devices = 2, .threads = 1}};
  using train::HeadMetric;
  auto const report =
      trainer.evaluate(train::Evaluation{loader, HeadMetric{"one", one, train::Accuracy{&line::Point::label}},
                                         HeadMetric{"other", other, train::Accuracy{&line::Point::label}},
                                         HeadMetric{"other", other, train::ConfusionMatrix{&line::Point::label, 2}}});
  std::vector<std::pair<std::string, double>> const expected{
      {"one_accuracy", 0.5},      {"other_accuracy", 0.5},    {"other_confusion.0.0", 0},
      {"other_confusion.0.1", 4}, {"other_confusion.1.0", 0}, {"other_confusion.1.1", 4}};  // the slope is 0
  CHECK(report.metrics == expected);
}

TEST_CASE("it judges evaluations as the metric would") {
  using Smaller = train::HeadMetric<decltype(one), Size>;
  using Larger = train::HeadMetric<decltype(one), train::Accuracy<line::Point, int>>;
  CHECK_FALSE(Smaller::higher_is_better);
  CHECK(Larger::higher_is_better);
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{TwoHeads{}, optim::SGD{.learning_rate = 0.2}, parallel::DataParallel{.devices = 2, .threads = 1}};
  auto const record = trainer.fit(loader, train::Evaluation{again, train::HeadMetric{"one", one, Size{}}},
                                  {.epochs = 2, .best_by = "one_size"});
  CHECK(record.evaluations[0].best);
  CHECK_FALSE(record.evaluations[1].best);  // the slope grows
}
