// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/data_parallel.hpp>
#include <lockstep/parallel/single_device.hpp>
#include <lockstep/train/accuracy.hpp>

#include "line.hpp"

using namespace lockstep;

namespace {
/// Writes down what it hears.
struct Recorder : train::Observer {
  std::vector<train::StartReport> starts;
  std::vector<train::StepReport> steps;
  std::vector<train::EvaluationReport> evaluations;
  int finished = 0;
  void start(train::StartReport const& r) override { starts.push_back(r); }
  void step(train::StepReport const& r) override { steps.push_back(r); }
  void evaluation(train::EvaluationReport const& r) override { evaluations.push_back(r); }
  void finish(train::RunRecord const&) override { ++finished; }
};
optim::SGD sgd() { return {.learning_rate = 0.2}; }
}  // namespace

TEST_CASE("a fit visits every sample once per epoch, in the steps that batch and accumulation give") {
  struct Case {
    Index samples, batch;
    int accumulation, epochs;
    Index max_steps, steps, seen;
  };
  for (auto c : {Case{10, 4, 1, 2, 0, 6, 20}, Case{10, 2, 2, 1, 0, 3, 10}, Case{10, 4, 1, 3, 4, 4, 14},
                 Case{1, 4, 3, 2, 0, 2, 2}, Case{12, 4, 1, 1, 9, 3, 12}}) {
    CAPTURE(c.samples);
    CAPTURE(c.batch);
    CAPTURE(c.accumulation);
    auto loader = line::loader(c.samples, c.batch);
    Recorder heard;
    Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
    auto const record = trainer.fit(
        loader, train::NoEvaluation{},
        {.epochs = c.epochs, .max_steps = c.max_steps, .accumulation = c.accumulation, .observers = {&heard}});
    CHECK(record.steps == c.steps);
    CHECK(record.samples == c.seen);
    CHECK(record.effective_batch_size == c.batch * c.accumulation);
    CHECK(record.step_seconds.size() == static_cast<std::size_t>(c.steps));
    REQUIRE(heard.steps.size() == static_cast<std::size_t>(c.steps));
    CHECK(heard.steps.back().step == c.steps);
    CHECK(heard.steps.back().samples == c.seen);
    CHECK(heard.starts.size() == 1);
    CHECK(heard.starts[0].steps == c.steps);
    CHECK(heard.finished == 1);
  }
}

TEST_CASE("it learns, and one device, two replicas and accumulation learn the same") {
  auto fit = [](auto policy, Index batch, int accumulation) {
    auto loader = line::loader(22, batch), again = line::loader(22, 5);
    Trainer trainer{line::Model{}, sgd(), policy};
    auto const record = trainer.fit(loader, train::Evaluation{again, train::Accuracy{&line::Point::label}},
                                    {.epochs = 30, .accumulation = accumulation});
    REQUIRE(record.evaluations.size() == 30);
    CHECK(record.evaluations.back().samples == 22);
    CHECK(record.evaluations.back().metrics[0].first == "accuracy");
    CHECK(record.evaluations.back().metrics[0].second == 1);
    CHECK(record.evaluations.back().loss < 1e-6);
    return trainer.values()[0];
  };
  auto const single = fit(parallel::SingleDevice{}, 8, 1);
  CHECK(std::abs(single - 2) < 1e-3);
  // A contraction towards 2: rounding of one step, below 20 * 2^-24 relative, is not amplified by later ones.
  double const bound = 180 * 20 * std::ldexp(1.0, -24) * 2;
  CHECK(std::abs(fit(parallel::SingleDevice{}, 4, 2) - single) <= bound);
  CHECK(std::abs(fit(parallel::DataParallel{.devices = 2}, 4, 1) - single) <= bound);
  CHECK(std::abs(fit(parallel::DataParallel{.devices = 4}, 2, 1) - single) <= bound);
}

TEST_CASE("an evaluation counts each sample once for any number of shards, also when some get none") {
  for (int devices : {1, 2, 3, 4})
    for (Index samples : {1, 2, 7, 9, 10}) {
      auto loader = line::loader(samples, 2);
      Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = devices, .threads = 1}};
      auto const report = trainer.evaluate(train::Evaluation{loader, train::Accuracy{&line::Point::label}});
      CHECK(report.samples == samples);
      double squares = 0, right = 0;
      for (auto p : line::points(samples))
        squares += static_cast<double>(p.y) * p.y, right += p.label == 0;  // the slope is 0
      CHECK(report.loss == doctest::Approx(squares / static_cast<double>(samples)));
      CHECK(report.metrics[0].second == doctest::Approx(right / static_cast<double>(samples)));
    }
}

TEST_CASE("the schedule scales the optimizer's learning rate by step") {
  auto loader = line::loader(8, 2);
  Recorder heard;
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader, train::NoEvaluation{}, {.epochs = 1, .schedule = {.warmup_steps = 4}, .observers = {&heard}});
  REQUIRE(heard.steps.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(heard.steps[i].learning_rate == doctest::Approx(0.05 * static_cast<double>(i + 1)));
}

TEST_CASE("the same seed gives the same bits for any number of threads and workers") {
  auto fit = [](int threads, int workers) {
    auto loader = line::loader(50, 4, workers);
    Trainer trainer{line::Model{}, optim::AdamW{.learning_rate = 0.01}, parallel::SingleDevice{.threads = threads}, 5};
    trainer.fit(loader, train::NoEvaluation{}, {.epochs = 3});
    return trainer.values()[0];
  };
  auto const once = fit(1, 1);
  for (int threads : {1, 2, 4})
    for (int workers : {0, 1, 3}) CHECK(fit(threads, workers) == once);
}

TEST_CASE("what an observer throws ends the run, and the trainer can be used again") {
  struct Stop : train::Observer {
    void step(train::StepReport const& r) override {
      if (r.step == 2) throw Error("enough");
    }
  } stop;
  auto loader = line::loader(8, 2);
  Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = 2}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::NoEvaluation{}, {.epochs = 2, .observers = {&stop}}), "enough",
                       Error);
  CHECK(trainer.fit(loader).steps == 2);
}
