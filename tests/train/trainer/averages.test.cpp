// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/averages.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/normalization/batch_norm.hpp>
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

namespace {

struct Place {
  std::array<float, 2> x;
  int label;
};
/// Statistics of batch norm depend on learned parameters; the buffer `kept` follows no batch.
class Normalized {
 public:
  void visit(auto&& each) {
    each("first", first_);
    each("norm", norm_);
    each("last", last_);
    each("kept", kept_);
  }
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const hidden = first_.forward(context, context.input(batch[&Place::x].values));
    return last_.forward(context, norm_.forward(context, hidden));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&Place::label]);
  }

 private:
  nn::Linear first_{2, 3};
  nn::BatchNorm norm_{3, {.momentum = 0.3}};
  nn::Linear last_{3, 2};
  nn::Buffer kept_{{1}, nn::Initializer::constant(7)};
};

std::vector<Place> places() {
  std::vector<Place> all;
  for (int i = 0; i < 24; ++i)
    all.push_back({{std::sin(static_cast<float>(i)), 3 + std::cos(static_cast<float>(2 * i))}, i % 2});
  return all;
}

}  // namespace

TEST_CASE("statistics of batch norm for the averages are the means over batches by the averages") {
  auto const check = [](auto policy, Index batch_size, int shards) {
    CAPTURE(shards);
    auto const all = places();
    data::DataLoader loader{
        data::InMemoryDataset{all}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = batch_size}};
    Trainer trainer{Normalized{}, optim::Averaged{optim::SGD{.learning_rate = 0.3}, 0.9}, std::move(policy), 3};
    trainer.fit(loader, {.epochs = 3});
    std::vector<float> const values(trainer.values().begin(), trainer.values().end()),
        before(trainer.buffers().begin(), trainer.buffers().end());
    auto const buffers = train::averaged_buffers(trainer, loader);
    auto const averages = train::averages(trainer);
    CHECK(values == std::vector<float>(trainer.values().begin(), trainer.values().end()));
    if (trainer.rank() == 0)  // whose buffers all ranks now have
      CHECK(before == std::vector<float>(trainer.buffers().begin(), trainer.buffers().end()));

    auto const find = [](auto const& entries, std::string const& name) {
      return static_cast<std::size_t>(
          std::find_if(entries.begin(), entries.end(), [&](auto const& e) { return e.name == name; })->offset);
    };
    auto const weight = find(trainer.layout().entries(), "first.weight"),
               bias = find(trainer.layout().entries(), "first.bias"),
               mean = find(trainer.layout().buffers(), "norm.running_mean"),
               variance = find(trainer.layout().buffers(), "norm.running_var");
    auto const batches = 24 / batch_size;  // batch b of step s has the samples s * step + b, + shards, ...
    for (std::size_t channel = 0; channel < 3; ++channel) {
      double means = 0, variances = 0;
      for (Index b = 0; b < batches; ++b) {
        std::vector<double> y;
        for (Index row = 0; row < batch_size; ++row) {
          auto const i = b / shards * shards * batch_size + b % shards + row * shards;
          double sum = averages[bias + channel];
          for (std::size_t k = 0; k < 2; ++k)
            sum += static_cast<double>(averages[weight + 2 * channel + k]) * all[static_cast<std::size_t>(i)].x[k];
          y.push_back(sum);
        }
        double const m = std::accumulate(y.begin(), y.end(), 0.0) / static_cast<double>(batch_size);
        double squares = 0;
        for (double const each : y) squares += (each - m) * (each - m);
        means += m / static_cast<double>(batches);
        variances += squares / static_cast<double>(batch_size - 1) / static_cast<double>(batches);
      }
      CHECK(buffers[mean + channel] == doctest::Approx(means).epsilon(1e-4));
      CHECK(buffers[variance + channel] == doctest::Approx(variances).epsilon(1e-4));
      CHECK(std::abs(before[variance + channel] - buffers[variance + channel]) > 1e-4f);
    }
    CHECK(buffers[find(trainer.layout().buffers(), "kept")] == 7);
  };
  check(parallel::SingleDevice{.threads = 1}, 8, 1);
  check(parallel::DataParallel{.devices = 2, .threads = 1}, 4, 2);
  launch::Options ranks;
  ranks.threads = 2;
  launch::run(ranks, [&](launch::World& world) {
    check(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, 4, 2);
    return 0;
  });
}
