// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/metrics/loss_part.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/line.hpp"

using namespace lockstep;
using train::LossPart;
static_assert(train::Metric<LossPart>);

namespace {

/// The squared error, and a part with weight 2 for each point and a value of 3 times its x.
template <class Context>
nn::Loss<HostSpace> joined(Context& context, nn::Loss<HostSpace> const& error, auto const& batch) {
  nn::Loss<HostSpace> far;
  for (float x : batch[&line::Point::x].values.span()) far += {3.0 * static_cast<double>(x), 2};
  return nn::named_loss(context, "error", error).with_auxiliary(nn::named_loss(context, "far", far));
}
struct OfBatch : line::Model {  // a loss of the batch: the model runs once more to predict
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return joined(context, line::Model::forward(context, batch), batch);
  }
};
class OfPrediction {  // a loss of the prediction
 public:
  void visit(auto&& each) { each("slope", slope_); }
  auto predict(auto& context, auto const& batch) const {
    return toy::multiply(context, slope_, context.input(batch[&line::Point::x].values));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& y, auto const& batch) const {
    auto const targets = batch[&line::Point::y].values.span();
    return joined(context, toy::squared_error(context, y, std::vector<double>(targets.begin(), targets.end())), batch);
  }

 private:
  nn::Parameter slope_{{1}, nn::Initializer::constant(0)};
};

/// Computes a loss and predicts nothing.
struct Blind {
  line::Model line;
  void visit(auto&& each) { each("line", line); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return nn::named_loss(context, "error", line.forward(context, batch));
  }
};

/// Names a part whose labels are all missing.
struct Unlabelled : line::Model {
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return line::Model::forward(context, batch).with_auxiliary(nn::named_loss(context, "rare", nn::LossOf<Context>{}));
  }
};

/// Counts its inputs.
struct Shown {
  double rows = 0;
  void add(auto const& prediction, auto const&) { rows += static_cast<double>(prediction.extent(0)); }
  [[nodiscard]] std::span<double> totals() noexcept { return {&rows, 1}; }
  [[nodiscard]] double value() const noexcept { return rows; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "shown"; }
};

void check(train::EvaluationReport const& report, Index samples) {
  double squares = 0, far = 0;
  for (auto const& p : line::points(samples)) squares += static_cast<double>(p.y) * p.y, far += 3.0 * p.x;
  auto const count = static_cast<double>(samples);
  CHECK(report.loss == doctest::Approx((squares + far) / count));
  REQUIRE(report.metrics.size() == 3);
  CHECK(report.metrics[0].first == "far");
  CHECK(report.metrics[0].second == doctest::Approx(far / (2 * count)));
  CHECK(report.metrics[1].second == count);  // shown
  CHECK(report.metrics[2].first == "error");
  CHECK(report.metrics[2].second == doctest::Approx(squares / count));
}
auto parts_and_shown(auto& loader) { return train::Evaluation{loader, LossPart{"far"}, Shown{}, LossPart{"error"}}; }

}  // namespace

TEST_CASE("a part of the loss is its sum over its own weight, for any number of devices, some without samples") {
  for (int devices : {1, 2, 4})
    for (Index samples : {1, 7, 9}) {
      auto loader = line::loader(samples, 2);
      parallel::DataParallel const policy{.devices = devices, .threads = 1};
      check(Trainer{OfBatch{}, optim::SGD{}, policy}.evaluate(parts_and_shown(loader)), samples);
      check(Trainer{OfPrediction{}, optim::SGD{}, policy}.evaluate(parts_and_shown(loader)), samples);
    }
}

TEST_CASE("it covers all ranks") {
  launch::Options options;
  options.threads = 2;
  launch::run(options, [](launch::World& world) {
    auto loader = line::loader(9, 2);
    Trainer trainer{OfPrediction{}, optim::SGD{}, parallel::DistributedDataParallel{comm::connect(world)}};
    check(trainer.evaluate(parts_and_shown(loader)), 9);
    return 0;
  });
}

TEST_CASE("a model with only a loss is not asked for a prediction, and a part may judge evaluations") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{Blind{}, optim::SGD{.learning_rate = 0.2}, parallel::SingleDevice{}};
  auto const record = trainer.fit(loader, train::Evaluation{again, LossPart{"error"}},
                                  {.epochs = 3, .patience = 3, .best_by = "error"});
  REQUIRE(record.evaluations.size() == 3);
  for (auto const& report : record.evaluations) CHECK(report.metrics[0].second == report.loss);
  CHECK(record.evaluations[2].loss < record.evaluations[0].loss);
  CHECK(record.evaluations[2].best);  // the least
}

TEST_CASE("a part without weight is NaN, so that no evaluation is the best by it") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{Unlabelled{}, optim::SGD{.learning_rate = 0.2}, parallel::SingleDevice{}};
  auto const record = trainer.fit(loader, train::Evaluation{again, LossPart{"rare"}}, {.epochs = 2, .best_by = "rare"});
  REQUIRE(record.evaluations.size() == 2);
  for (auto const& report : record.evaluations) {
    CHECK(std::isnan(report.metrics[0].second));
    CHECK_FALSE(report.best);
  }
}

TEST_CASE("a part that the model does not name ends a fit before the first step, with the model's names") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{OfBatch{}, optim::SGD{.learning_rate = 0.2}, parallel::SingleDevice{}};
  CHECK_THROWS_WITH_AS(static_cast<void>(trainer.evaluate(train::Evaluation{again, LossPart{"kl"}})),
                       doctest::Contains("has no part \"kl\"; it names \"error\", \"far\""), ConfigError);
  CHECK_THROWS_AS(static_cast<void>(trainer.fit(loader, train::Evaluation{again, LossPart{"kl"}}, {.dry_run = true})),
                  ConfigError);
}
