// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/averages.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/checkpoint/keep_best.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/trainer_state.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"
#include "train/text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

auto texts(Index batch) {
  return data::DataLoader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = batch}};
}
TextClassifier model() { return TextClassifier({.words = 50, .longest = 24, .layers = 1}); }
optim::Averaged<optim::AdamW> averaged() { return optim::Averaged{optim::AdamW{.learning_rate = 0.01}, 0.9}; }

struct Outcome {
  std::vector<float> values, averages;
  std::vector<double> losses;
  bool operator==(Outcome const&) const = default;
};
Outcome fit(auto policy, Index batch, FitOptions const& options) {
  auto loader = texts(batch), again = texts(batch);
  Trainer trainer{model(), averaged(), std::move(policy)};
  auto const record = trainer.fit(loader, train::Evaluation{again}, options);
  Outcome out{{trainer.values().begin(), trainer.values().end()}, train::averages(trainer), {}};
  for (auto const& report : record.evaluations) out.losses.push_back(report.loss);
  CHECK(trainer.evaluate(train::Evaluation{again}).loss == out.losses.back());
  CHECK(std::vector<float>(trainer.values().begin(), trainer.values().end()) == out.values);  // put back
  return out;
}

}  // namespace

TEST_CASE("a trainer evaluates and saves the average, and continues to learn from the values") {
  TemporaryFolder const folder;
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer plain{line::Model{}, optim::SGD{.learning_rate = 0.2}, parallel::SingleDevice{.threads = 1}};
  Trainer trainer{line::Model{}, optim::Averaged{optim::SGD{.learning_rate = 0.2}, 0.5},
                  parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, folder / "best.safetensors");
  std::vector<double> slopes;
  struct Slopes : train::Observer {
    std::vector<double>* to;
    std::span<float const> (*values)(void*);
    void* trainer;
    void step(train::StepReport const&) override { to->push_back(static_cast<double>(values(trainer)[0])); }
  } watch;
  watch.to = &slopes;
  watch.trainer = &plain;
  watch.values = [](void* of) { return static_cast<decltype(plain)*>(of)->values(); };
  plain.fit(loader, {.epochs = 2, .observers = {&watch}});
  auto const record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 2, .observers = {&best}});
  CHECK(trainer.values()[0] == plain.values()[0]);

  double average = 0;
  for (std::size_t t = 1; t <= slopes.size(); ++t)
    average += std::max(0.5, 1.0 / static_cast<double>(t)) * (slopes[t - 1] - average);
  auto const averages = train::averages(trainer);
  CHECK(static_cast<double>(averages[0]) == doctest::Approx(average));
  CHECK(averages[0] != trainer.values()[0]);
  double squares = 0;
  for (auto const& p : line::points(8))
    squares += std::pow(static_cast<double>(averages[0]) * static_cast<double>(p.x) - static_cast<double>(p.y), 2);
  CHECK(record.evaluations[1].loss == doctest::Approx(squares / 8));
  CHECK(record.evaluations[1].best);
  Trainer saved{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  saved.load(folder / "best.safetensors");
  CHECK(saved.values()[0] == averages[0]);
}

TEST_CASE("an observer that evaluates once more, or reads the averages, gets those of the evaluation") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::Averaged{optim::SGD{.learning_rate = 0.2}, 0.5},
                  parallel::SingleDevice{.threads = 1}};
  struct Asks : train::Observer {
    std::function<void(train::EvaluationReport const&)> ask;
    void evaluation(train::EvaluationReport const& report) override { ask(report); }
  } observer;
  std::vector<float> asked;
  observer.ask = [&](train::EvaluationReport const& report) {
    CHECK(trainer.evaluate(train::Evaluation{again}).loss == report.loss);
    asked = train::averages(trainer);
  };
  trainer.fit(loader, train::Evaluation{again}, {.epochs = 2, .observers = {&observer}});
  CHECK(train::averages(trainer) == asked);
  TemporaryFolder const folder;
  auto const path = folder / "state.safetensors";
  train::save_state(trainer, path);
  // the values are the averages now, so saving or changing them is refused
  observer.ask = [&](train::EvaluationReport const&) {
    CHECK_THROWS_WITH_AS(train::save_state(trainer, path),
                         doctest::Contains("an evaluation with averaged parameters is running"), ConfigError);
    CHECK_THROWS_AS(train::load_state(trainer, path), ConfigError);
    CHECK_THROWS_AS(trainer.load(path), ConfigError);
    CHECK_THROWS_AS(trainer.copy_parameters(trainer), ConfigError);
  };
  trainer.fit(loader, train::Evaluation{again}, {.observers = {&observer}});
  CHECK(trainer.values()[0] != train::averages(trainer)[0]);
}

TEST_CASE("averages are equal under every policy, with a sharded optimizer too, and survive a pause") {
  TemporaryFolder const folder;
  auto const whole = fit(parallel::DataParallel{.devices = 2, .threads = 1}, 4,
                         {.epochs = 3, .checkpoints = {.folder = folder / "saved", .every = 5}});
  CHECK(whole.averages != whole.values);
  for (bool const sharded : {false, true})
    launch::run({.threads = 2}, [&](launch::World& world) {
      auto const policy = [&] {
        parallel::DistributedDataParallel made{comm::connect(world), 4096, 1};
        made.shard_optimizer = sharded;
        return made;
      };
      CHECK(fit(policy(), 4, {.epochs = 3}) == whole);
      CHECK(fit(policy(), 4, {.epochs = 3, .checkpoints = {.resume = folder / "saved/step_10.safetensors"}}).averages ==
            whole.averages);
      return 0;
    });
}

TEST_CASE("loaded and copied parameters are their own average, and others are unchanged") {
  TemporaryFolder const folder;
  auto const path = folder / "best.safetensors";
  for (bool const sharded : {false, true})
    launch::run({.threads = 2}, [&](launch::World& world) {
      auto mine = texts(4), evaluated = texts(4), again = texts(4);
      parallel::DistributedDataParallel policy{comm::connect(world), 4096, 1};
      policy.shard_optimizer = sharded;
      Trainer trainer{model(), averaged(), std::move(policy)};
      trainer.fit(mine, {.epochs = 2});
      auto const before = train::averages(trainer);
      Trainer saved{model(), averaged(), parallel::SingleDevice{.threads = 1}, 5};
      auto const whole = std::vector<float>(saved.values().begin(), saved.values().end());
      if (world.rank == 0) saved.save(path);
      trainer.load(path, "head.");
      auto now = train::averages(trainer);
      for (auto const& entry : trainer.layout().entries()) {
        bool const loaded = entry.name.starts_with("head.");
        CAPTURE(entry.name);
        CHECK(std::equal(now.begin() + entry.offset, now.begin() + entry.offset + entry.size,
                         (loaded ? whole : before).begin() + entry.offset));
      }
      trainer.load(path);
      CHECK(train::averages(trainer) == whole);
      CHECK(trainer.evaluate(train::Evaluation{evaluated}).loss ==
            doctest::Approx(saved.evaluate(train::Evaluation{again}).loss));
      return 0;
    });
}
