// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/evaluation.hpp>

#include <doctest/doctest.h>

#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "train/line.hpp"

using namespace lockstep;

namespace {

/// Has the members of a loader that a trainer uses.
struct Loader {
  using Batch = int;
  void start(data::Split const&, Index, Index, Index) {}
  Index steps(data::Split const&) { return 0; }
  Batch* next() { return nullptr; }
};

}  // namespace

TEST_CASE("an evaluation refers to its loader and owns its metrics") {
  Loader loader;
  struct Sample {
    int label;
  };
  train::Evaluation const evaluation{loader, train::Accuracy{&Sample::label}};
  CHECK(&evaluation.loader == &loader);
  CHECK(std::tuple_size_v<decltype(evaluation.metrics)> == 1);
  CHECK(std::tuple_size_v<decltype(train::Evaluation{loader}.metrics)> == 0);
}

TEST_CASE("evaluations of one fit have names, except the first") {
  Loader validation, test, other;
  struct Sample {
    int label;
  };
  auto const all = train::Evaluation{validation, train::Accuracy{&Sample::label}}
                       .with("test", train::Evaluation{test})
                       .with("other", train::Evaluation{other, train::Accuracy{&Sample::label}});
  static_assert(train::is_evaluation<std::remove_const_t<decltype(all)>>);
  std::vector<std::pair<std::string, void const*>> found;
  train::detail::each_evaluation(
      all, [&](std::string const& prefix, auto const& each) { found.emplace_back(prefix, &each.loader); });
  CHECK(found == decltype(found){{"", &validation}, {"test_", &test}, {"other_", &other}});
}

TEST_CASE("with several evaluations in a fit, the first is reported, with the others' numbers as its metrics") {
  auto const check = [](auto policy) {
    auto loader = line::loader(8, 2), first = line::loader(5, 2), second = line::loader(9, 2);
    Trainer trainer{line::Model{}, optim::Averaged{optim::SGD{.learning_rate = 0.1}, 0.5}, std::move(policy)};
    train::Accuracy const accuracy{&line::Point::label};
    train::Evaluation const one{first, accuracy}, other{second, accuracy};
    auto const record = trainer.fit(loader, one.with("test", other), {.epochs = 2, .best_by = "test_loss"});
    REQUIRE(record.evaluations.size() == 2);
    CHECK(record.evaluations[1].best);  // the smaller one
    auto const alone = trainer.evaluate(one), beside = trainer.evaluate(other),
               both = trainer.evaluate(one.with("test", other));
    std::vector<std::pair<std::string, double>> const expected{
        alone.metrics[0], {"test_loss", beside.loss}, {"test_accuracy", beside.metrics[0].second}};
    for (train::EvaluationReport const& report : {record.evaluations[1], both}) {
      CHECK(report.loss == alone.loss);
      CHECK(report.samples == 5);
      CHECK(report.metrics == expected);
    }
    CHECK(alone.loss != beside.loss);
  };
  check(parallel::SingleDevice{.threads = 1});
  check(parallel::DataParallel{.devices = 3, .threads = 1});
  launch::run({.threads = 2}, [&](launch::World& world) {
    check(parallel::DistributedDataParallel{comm::connect(world), 4096, 1});
    return 0;
  });
}

TEST_CASE("impossible combinations of evaluations are refused before a fit's first step") {
  auto loader = line::loader(8, 2), first = line::loader(5, 2), second = line::loader(9, 2), none = line::loader(0, 2);
  Trainer trainer{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  train::Accuracy const accuracy{&line::Point::label};
  train::Evaluation const one{first};
  train::Evaluation const other{second, accuracy};
  auto const message = [&](auto const& evaluations, FitOptions const& options, char const* text) {
    CHECK_THROWS_WITH(static_cast<void>(trainer.fit(loader, evaluations, options)), doctest::Contains(text));
  };
  message(one.with("test", other), {.best_by = "accuracy"}, "name one of loss, test_loss, test_accuracy");
  message(one.with("test", other).with("test", other), {},
          "a metric is called \"test_loss\", a name that another metric");
  message(one.with("test", train::Evaluation{loader}), {}, "training and evaluation use one loader");
  message(one.with("test", train::Evaluation{none}), {}, "evaluate (test): there is nothing to evaluate on");
  CHECK_THROWS_WITH(static_cast<void>(trainer.evaluate(one.with("test", other).with("test", other))),
                    doctest::Contains("evaluate: a metric is called \"test_loss\", a name that another metric"));
  CHECK(trainer.fit(loader, one.with("test", other), {.dry_run = true}).evaluations.empty());
}
