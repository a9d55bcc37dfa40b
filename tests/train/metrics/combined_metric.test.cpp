// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/combined_metric.hpp>

#include <array>
#include <cmath>
#include <span>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/auc.hpp>
#include <lockstep/train/metrics/head_metric.hpp>
#include <lockstep/train/metrics/r2_score.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/line.hpp"

using namespace lockstep;
using train::Accuracy;
using train::Auc;
using train::CombinedMetric;
using train::HeadMetric;
using train::R2Score;

namespace {

/// The line's logits, and other numbers, as two heads.
template <class Rows>
struct Heads {
  Rows logits, y;
};
struct Line : line::Model {
  auto predict(auto& context, auto const& batch) const {
    auto const logits = line::Model::predict(context, batch);
    auto y = context.template variable<2>({logits.extent(0), 1});
    for (Index row = 0; row < y.extent(0); ++row) {
      auto const x = batch[&line::Point::x].values(row);
      y.value(row, 0) = x + std::sin(20 * x);
    }
    return Heads<decltype(y)>{logits, y};
  }
};
constexpr auto logits_of = [](auto const& heads) { return heads.logits; };
constexpr auto y_of = [](auto const& heads) { return heads.y; };

auto accuracy() { return HeadMetric{"class", logits_of, Accuracy{&line::Point::label}}; }
auto r2() { return HeadMetric{"y", y_of, R2Score{&line::Point::y}}; }
auto auc() { return HeadMetric{"y", y_of, Auc{&line::Point::label}}; }
auto combined() {
  return CombinedMetric{"score", [](double a, double b, double c) { return a + 10 * b + 100 * c; }, accuracy(), auc(),
                        r2()};
}
static_assert(train::Metric<decltype(combined())>);
static_assert(train::detail::HasSamples<decltype(combined())>);
static_assert(!train::detail::HasSamples<CombinedMetric<double (*)(double), Accuracy<line::Point, int>>>);

void check_combined(train::EvaluationReport const& report) {
  REQUIRE(report.metrics.size() == 4);
  CHECK(report.metrics[0].first == "score");
  auto const [a, b, c] = std::array{report.metrics[1].second, report.metrics[2].second, report.metrics[3].second};
  CHECK(b > 0.5);
  CHECK(b < 1);
  CHECK(c != 0);
  CHECK(report.metrics[0].second == doctest::Approx(a + 10 * b + 100 * c));
}

}  // namespace

TEST_CASE("a combination of metrics has the values of the metrics over all devices and ranks") {
  for (int devices : {1, 2, 3}) {
    auto loader = line::loader(23, 2);
    Trainer trainer{Line{}, optim::SGD{}, parallel::DataParallel{.devices = devices, .threads = 1}};
    check_combined(trainer.evaluate(train::Evaluation{loader, combined(), accuracy(), auc(), r2()}));
  }
  launch::Options options;
  options.threads = 2;
  launch::run(options, [](launch::World& world) {
    auto loader = line::loader(23, 2);
    Trainer trainer{Line{}, optim::SGD{}, parallel::DistributedDataParallel{comm::connect(world)}};
    check_combined(trainer.evaluate(train::Evaluation{loader, combined(), accuracy(), auc(), r2()}));
    return 0;
  });
}

TEST_CASE("totals of a combination that were read or changed count in later batches") {
  struct Rows {
    double rows = 0;
    void add(Index more, int) { rows += static_cast<double>(more); }
    std::span<double> totals() { return {&rows, 1}; }
    [[nodiscard]] double value() const { return rows; }
    static char const* name() { return "rows"; }
  };
  CombinedMetric metric{"difference", [](double a, double b) { return 100 * a - b; }, Rows{}, Rows{5}};
  CHECK(metric.value() == -5);
  metric.add(Index{2}, 0);
  CHECK(metric.value() == 193);
  metric.totals()[0] += 10;  // as if another device had seen ten rows
  CHECK(metric.value() == 1193);
  metric.add(Index{1}, 0);
  CHECK(metric.value() == 1292);
  CHECK(metric.totals()[0] == 13);
  CHECK(metric.totals()[1] == 8);
}

TEST_CASE("a combination chooses the best evaluation and ends a fit early") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{Line{}, optim::SGD{.learning_rate = 0.2}, parallel::DataParallel{.devices = 2, .threads = 1}};
  auto const record =
      trainer.fit(loader, train::Evaluation{again, CombinedMetric{"constant", [](double r) { return 0 * r; }, r2()}},
                  {.epochs = 9, .patience = 2, .best_by = "constant"});
  CHECK(record.evaluations.size() == 3);
  CHECK(record.evaluations[0].best);
}
