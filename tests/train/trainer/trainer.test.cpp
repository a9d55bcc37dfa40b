// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/trainer.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/token_budget_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/loss/cross_entropy.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/module/frozen.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/checkpoint/checkpoint.hpp>
#include <lockstep/train/checkpoint/keep_best.hpp>
#include <lockstep/train/files/export_parameters.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/metrics/auc.hpp>
#include <lockstep/train/trainer/trainer_state.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"

using namespace lockstep;

namespace {
/// Records its calls.
struct Recorder : train::Observer {
  std::vector<train::StartReport> starts;
  std::vector<train::StepReport> steps;
  std::vector<train::EvaluationReport> evaluations;
  std::vector<train::EvaluationProgress> progress;
  int finished = 0;
  void start(train::StartReport const& r) override { starts.push_back(r); }
  void step(train::StepReport const& r) override { steps.push_back(r); }
  void evaluating(train::EvaluationProgress const& r) override { progress.push_back(r); }
  void evaluation(train::EvaluationReport const& r) override { evaluations.push_back(r); }
  void finish(train::RunRecord const&) override { ++finished; }
};
optim::SGD sgd() { return {.learning_rate = 0.2}; }

/// Two replicas, the second of which changes its numbers itself in its third pass.
struct Faulty : parallel::DataParallel {
  template <class Model, class Optimizer>
  struct Session : parallel::DataParallel::Session<Model, Optimizer> {
    using Base = parallel::DataParallel::Session<Model, Optimizer>;
    using Base::Base;
    int passes = 0;
    template <class Batch>
    void micro_step(std::span<Batch const> batches, parallel::MicroStep const& step) {
      Base::micro_step(batches, step);
      if (++passes == 3)
        this->for_each_shard([](int device, auto& replica) { replica.value_data()[0] += device == 1 ? 1.f : 0.f; });
    }
  };
};
/// Stores its counts.
struct Growing {
  std::vector<double> seen;
  void add(auto const& prediction, auto const&) { seen.push_back(static_cast<double>(prediction.extent(0))); }
  [[nodiscard]] std::span<double> totals() noexcept { return seen; }
  [[nodiscard]] double value() const noexcept { return seen.empty() ? 0 : seen[0]; }
  [[nodiscard]] static constexpr char const* name() noexcept { return "growing"; }
};
}  // namespace

TEST_CASE("a fit visits every sample once per epoch, in steps that follow from batch size and accumulation") {
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
    Recorder recorder;
    Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
    auto const record = trainer.fit(
        loader, train::NoEvaluation{},
        {.epochs = c.epochs, .max_steps = c.max_steps, .accumulation = c.accumulation, .observers = {&recorder}});
    CHECK(record.steps == c.steps);
    CHECK(record.samples == c.seen);
    CHECK(record.effective_batch_size == c.batch * c.accumulation);
    CHECK(record.step_seconds.size() == static_cast<std::size_t>(c.steps));
    REQUIRE(recorder.steps.size() == static_cast<std::size_t>(c.steps));
    CHECK(recorder.steps.back().step == c.steps);
    CHECK(recorder.steps.back().samples == c.seen);
    CHECK(recorder.starts.size() == 1);
    CHECK(recorder.starts[0].steps == c.steps);
    CHECK(recorder.finished == 1);
  }
}

TEST_CASE("observers, and callers of evaluate, are notified after each batch of an evaluation") {
  auto loader = line::loader(8, 4), other = line::loader(10, 4);
  Recorder recorder;
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader, train::Evaluation{other}, {.epochs = 2, .observers = {&recorder}});
  REQUIRE(recorder.progress.size() == 2 * 3);
  for (std::size_t i = 0; i < 6; ++i) {
    CHECK(recorder.progress[i].done == static_cast<Index>(i % 3) + 1);
    CHECK(recorder.progress[i].steps == 3);
  }
  std::vector<std::pair<Index, Index>> progress_calls;
  static_cast<void>(trainer.evaluate(train::Evaluation{other},
                                     [&](Index done, Index all) { progress_calls.emplace_back(done, all); }));
  CHECK(progress_calls == std::vector<std::pair<Index, Index>>{{1, 3}, {2, 3}, {3, 3}});
}

TEST_CASE("a fit of no epochs takes no step, and reports no unused parameters") {
  auto loader = line::loader(10, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const record = trainer.fit(loader, {.epochs = 0});
  CHECK(record.steps == 0);
  CHECK(record.session.unused_parameters.empty());
}

TEST_CASE("a fit without training data is refused") {
  auto loader = line::loader(0, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader),
                       doctest::Contains("nothing to train on: 0 samples make no step of batches of 4"), DataError);
}

TEST_CASE("more steps may be planned than could ever be taken, or counted") {
  for (Index const epochs : {Index{100'000'000'000'000}, std::numeric_limits<Index>::max()}) {
    CAPTURE(epochs);
    auto loader = line::loader(8, 4), again = line::loader(8, 4);
    Trainer still{line::Model{}, optim::SGD{.learning_rate = 0}, parallel::SingleDevice{.threads = 1}};
    CHECK(still.fit(loader, train::Evaluation{again}, {.epochs = epochs, .accumulation = 2, .patience = 2}).steps == 3);
    CHECK(still.fit(loader, {.epochs = epochs, .max_steps = 5}).steps == 5);
  }
}

TEST_CASE("it learns, and one device, two replicas and accumulation learn equally") {
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
  // A contraction towards 2: the rounding of one step, below 20 * 2^-24 relative, is not amplified by later ones.
  double const bound = 180 * 20 * std::ldexp(1.0, -24) * 2;
  CHECK(std::abs(fit(parallel::SingleDevice{}, 4, 2) - single) <= bound);
  CHECK(std::abs(fit(parallel::DataParallel{.devices = 2}, 4, 1) - single) <= bound);
  CHECK(std::abs(fit(parallel::DataParallel{.devices = 4}, 2, 1) - single) <= bound);
}

TEST_CASE("an evaluation counts each sample once for any number of shards, including empty ones") {
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

TEST_CASE("an evaluation counts each sample once, whatever the tail of its loader") {
  for (auto const tail : {data::Tail::exact, data::Tail::pad, data::Tail::drop}) {
    data::DataLoader loader{data::InMemoryDataset{line::points(101)},
                            data::SequentialSampler{},
                            data::PadCollate{},
                            {.batch_size = 3, .tail = tail}};
    Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = 4, .threads = 1}};
    for (int round = 0; round < 2; ++round)
      CHECK(trainer.evaluate(train::Evaluation{loader, train::Accuracy{&line::Point::label}}).samples == 101);
    CHECK(loader.steps({.first = 0, .count = 4, .all = 4}) == (tail == data::Tail::drop ? 8 : 9));  // for training
  }
}

namespace {
/// Points of which each seventh cannot be read.
struct BrokenPoints {
  std::vector<line::Point> all = line::points(101);
  [[nodiscard]] Index size() const noexcept { return std::ssize(all); }
  [[nodiscard]] line::Point get(Index i) const {
    if (i % 7 == 3) throw DataError("it is broken");
    return all[static_cast<std::size_t>(i)];
  }
};
}  // namespace

TEST_CASE("an evaluation replaces no sample that cannot be read by another, which would count twice") {
  for (auto const on_failure : {data::OnFailure::skip, data::OnFailure::substitute}) {
    data::DataLoader loader{
        BrokenPoints{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 3, .on_failure = on_failure}};
    Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = 4, .threads = 1}};
    auto const report = trainer.evaluate(train::Evaluation{loader, train::Accuracy{&line::Point::label}});
    CHECK(report.samples == 87);
    double squares = 0;
    auto const points = line::points(101);
    for (std::size_t i = 0; i < points.size(); ++i) squares += i % 7 == 3 ? 0 : double{points[i].y} * points[i].y;
    CHECK(report.loss == doctest::Approx(squares / 87));
    CHECK(loader.stats().skipped == 14);
    CHECK(loader.stats().substituted == 0);
    loader.start({}, 0, 0, 1);
    CHECK(loader.next().rows() == 3);                                              // samples 0 to 2
    CHECK(loader.next().rows() == (on_failure == data::OnFailure::skip ? 2 : 3));  // for training, as the option says
  }
}

TEST_CASE("each fit's record counts the samples that the loaders of all ranks skipped or replaced") {
  for (auto const on_failure : {data::OnFailure::skip, data::OnFailure::substitute}) {
    auto const check = [on_failure](auto policy) {
      data::DataLoader loader{
          BrokenPoints{}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 3, .on_failure = on_failure}};
      Trainer trainer{line::Model{}, sgd(), std::move(policy)};
      for (int fit = 0; fit < 2; ++fit) {
        auto const record = trainer.fit(loader, {});
        CHECK(record.skipped_samples == (on_failure == data::OnFailure::skip ? 14 : 0));
        CHECK(record.replaced_samples == (on_failure == data::OnFailure::skip ? 0 : 14));
        CHECK(record.unreadable_samples.starts_with(
            on_failure == data::OnFailure::skip ? "14 samples were skipped:\n" : "14 samples were replaced:\n"));
        CHECK(record.unreadable_samples.find("it is broken") != std::string::npos);
      }
    };
    check(parallel::SingleDevice{});
    check(parallel::DataParallel{.devices = 2, .threads = 1});
    CHECK(launch::run({.threads = 2}, [&](launch::World& world) {
            check(parallel::DistributedDataParallel{comm::connect(world)});
            return 0;
          }) == 0);
  }
  auto whole = line::loader(22, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{}};
  auto const record = trainer.fit(whole, {});
  CHECK(record.skipped_samples + record.replaced_samples == 0);
  CHECK(record.unreadable_samples.empty());
}

namespace {
struct SlopeLogit : line::Model {
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto const y = this->line(context, batch);
    auto logits = context.template variable<2>({y.extent(0), 1});
    for (Index i = 0; i < y.extent(0); ++i) logits.value(i, 0) = batch[&line::Point::x].values(i) / 1000 + 5;
    return logits;
  }
};
}  // namespace

TEST_CASE("the area under the curve is exact and equal for any number of devices and ranks, also of close logits") {
  auto const area = [](auto policy) {
    auto loader = line::loader(101, 3);
    Trainer trainer{SlopeLogit{}, sgd(), std::move(policy)};
    return trainer.evaluate(train::Evaluation{loader, train::Auc{&line::Point::label}}).metrics[0].second;
  };
  for (int const devices : {1, 2, 3}) CHECK(area(parallel::DataParallel{.devices = devices, .threads = 1}) == 1);
  for (int const count : {2, 3}) {
    launch::Options ranks;
    ranks.threads = count;
    launch::run(ranks, [&](launch::World& world) {
      CHECK(area(parallel::DistributedDataParallel{comm::connect(world), 256, 1}) == 1);
      return 0;
    });
  }
}

TEST_CASE("parameters that are not finite after the last step end the run, and are neither saved nor evaluated") {
  auto const check = [](auto policy) {
    auto loader = line::loader(8, 8), held_out = line::loader(8, 8);
    lockstep_test::TemporaryFolder const folder;
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3e38}, std::move(policy)};
    int evaluations = 0;
    struct Counter final : train::Observer {
      explicit Counter(int& to) : count(&to) {}
      void evaluation(train::EvaluationReport const&) override { ++*count; }
      int* count;
    } counter(evaluations);
    train::KeepBest best(trainer, folder / "best.safetensors");
    CHECK_THROWS_WITH_AS(
        trainer.fit(loader, train::Evaluation{held_out, train::Accuracy{&line::Point::label}},
                    {.epochs = 1, .checkpoints = {.folder = folder / "run"}, .observers = {&counter, &best}}),
        doctest::Contains("after step 1 the parameter \"slope\" is inf"), Error);
    CHECK(evaluations == 0);
    CHECK(train::newest_checkpoint(folder / "run").empty());
    CHECK_FALSE(std::filesystem::exists(folder / "best.safetensors"));
    CHECK_THROWS_WITH_AS(trainer.save(folder / "p"), doctest::Contains("the parameter \"slope\" is inf"), Error);
    CHECK_THROWS_WITH_AS(train::export_parameters(trainer, folder / "p", ""), doctest::Contains("\"slope\" is inf"),
                         Error);
    CHECK_THROWS_WITH_AS(train::save_state(trainer, folder / "p"), doctest::Contains("is inf"), Error);
    CHECK_FALSE(std::filesystem::exists(folder / "p"));
  };
  check(parallel::SingleDevice{.threads = 1});
  check(parallel::DataParallel{.devices = 2, .threads = 1});
}

namespace {
/// Predicts NaN, with a loss that is finite.
struct NanModel : line::Model {
  template <class Context>
  auto predict(Context& context, auto const& batch) const {
    auto logits = line::Model::predict(context, batch);
    for (Index i = 0; i < logits.extent(0); ++i)
      for (Index k = 0; k < 2; ++k) logits.value(i, k) = std::numeric_limits<float>::quiet_NaN();
    return logits;
  }
};
}  // namespace

TEST_CASE("a model that predicts NaN is never the best by a metric") {
  auto loader = line::loader(8, 8), held_out = line::loader(8, 8);
  lockstep_test::TemporaryFolder const folder;
  Trainer trainer{NanModel{}, sgd(), parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, folder / "best.safetensors");
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{held_out, train::Accuracy{&line::Point::label}},
                                   {.epochs = 1, .best_by = "accuracy", .observers = {&best}}),
                       doctest::Contains("Accuracy: the model predicts a logit that is nan"), DataError);
  CHECK(folder.entries() == 0);
}

TEST_CASE("patience and plateau take the least improvement, and the best evaluation does not") {
  auto loader = line::loader(8, 8), held_out = line::loader(8, 8);
  auto const run = [&](double min_delta) {
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 1e-3}, parallel::SingleDevice{.threads = 1}};
    return trainer.fit(loader, train::Evaluation{held_out}, {.epochs = 8, .patience = 2, .min_delta = min_delta});
  };
  CHECK(run(0).evaluations.size() == 8);  // each is a little better
  auto const record = run(10);
  CHECK(record.evaluations.size() == 3);
  for (auto const& each : record.evaluations) CHECK(each.best);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{held_out}, {.epochs = 1, .min_delta = 1}),
                       doctest::Contains("min_delta is 1, and neither patience nor plateau.patience"), ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{held_out}, {.epochs = 1, .patience = 1, .min_delta = -1}),
                       doctest::Contains("min_delta is -1"), ConfigError);
}

namespace {
/// The mean error below y = 1 and above.
struct ErrorByHalf {
  static constexpr bool higher_is_better = false;
  std::array<double, 4> sums{};
  void add(auto const& prediction, auto const& batch) {
    for (Index row = 0; row < prediction.extent(0); ++row) {
      auto const half = static_cast<std::size_t>(batch[&line::Point::label].values(row));
      sums[2 * half] += std::abs(static_cast<double>(prediction.value(row, 1) - batch[&line::Point::y].values(row)));
      sums[2 * half + 1] += 1;
    }
  }
  std::span<double> totals() { return sums; }
  void values(auto const& each) const {
    for (std::size_t half : {0u, 1u})
      each(half == 0 ? "error_below" : "error_above", sums[2 * half + 1] > 0 ? sums[2 * half] / sums[2 * half + 1] : 0);
  }
  static constexpr char const* name() { return "error_by_half"; }
};
}  // namespace

TEST_CASE("a metric of several values is reported and logged under their names, any of which may judge") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  for (int devices : {1, 2}) {
    Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = devices, .threads = 1}};
    auto const record =
        trainer.fit(loader, train::Evaluation{again, train::Accuracy{&line::Point::label}, ErrorByHalf{}},
                    {.epochs = 3, .patience = 3, .best_by = "error_above"});
    REQUIRE(record.evaluations.size() == 3);
    auto const& last = record.evaluations[2];
    REQUIRE(last.metrics.size() == 3);
    CHECK(last.metrics[1].first == "error_below");
    CHECK(last.metrics[2].first == "error_above");
    auto const error = std::abs(2 - static_cast<double>(trainer.values()[0]));  // times the mean x
    CHECK(last.metrics[1].second == doctest::Approx(error * 0.3125));
    CHECK(last.metrics[2].second == doctest::Approx(error * 0.8125));
    CHECK(last.best);  // the smaller error
  }
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{again, ErrorByHalf{}}, {.best_by = "error_by_half"}),
                       doctest::Contains("name one of loss, error_below, error_above"), ConfigError);
}

TEST_CASE("ranks and devices learn and evaluate equally, also if an epoch's last step has fewer batches") {
  struct Outcome {
    std::vector<float> values;
    train::RunRecord record;
  };
  auto const fit = [](auto policy) {
    auto loader = line::loader(20, 2), again = line::loader(9, 2);  // 5 micro-steps, 2 per step
    Trainer trainer{line::Model{}, sgd(), std::move(policy)};
    auto record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 3, .accumulation = 2});
    return Outcome{{trainer.values().begin(), trainer.values().end()}, std::move(record)};
  };
  auto const devices = fit(parallel::DataParallel{.devices = 2, .threads = 1});
  CHECK(devices.record.steps == 9);
  launch::Options options;
  options.threads = 2;
  launch::run(options, [&](launch::World& world) {
    auto const ranks = fit(parallel::DistributedDataParallel{comm::connect(world)});
    CHECK(ranks.values == devices.values);
    CHECK(ranks.record.train_loss == devices.record.train_loss);
    for (std::size_t i = 0; i < 3; ++i) {
      CHECK(ranks.record.evaluations[i].samples == 9);
      CHECK(ranks.record.evaluations[i].loss == devices.record.evaluations[i].loss);
    }
    return 0;
  });
}

TEST_CASE("exposed communication time counts as communication, and no time counts twice") {
  struct Slow : comm::SelfCommunicator {
    void progress() const noexcept { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }
    [[nodiscard]] Slow split(int, int) const noexcept { return {}; }
  };
  auto loader = line::loader(8, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{Slow{}}};
  auto const record = trainer.fit(loader, {});
  auto const& phases = record.phases;
  CHECK(phases.communication >= 0.04);  // for two steps
  CHECK(phases.forward + phases.backward + phases.communication + phases.optimizer <= record.training_seconds);
}

TEST_CASE("the schedule scales the optimizer's learning rate by step") {
  auto loader = line::loader(8, 2);
  Recorder recorder;
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader, train::NoEvaluation{}, {.epochs = 1, .schedule = {.warmup_steps = 4}, .observers = {&recorder}});
  REQUIRE(recorder.steps.size() == 4);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(recorder.steps[i].learning_rate == doctest::Approx(0.05 * static_cast<double>(i + 1)));

  // Falls until the end of the fit, unless it has its own end.
  auto const rates = [&](optim::Schedule schedule) {
    recorder.steps.clear();
    trainer.fit(loader, {.epochs = 2, .max_steps = 7, .schedule = schedule, .observers = {&recorder}});
    std::vector<double> all;
    for (auto const& step : recorder.steps) all.push_back(step.learning_rate);
    return all;
  };
  using Kind = optim::Schedule::Kind;
  CHECK(rates({.warmup_steps = 2, .kind = Kind::linear}) ==
        rates({.warmup_steps = 2, .total_steps = 7, .kind = Kind::linear}));
  CHECK(recorder.steps[6].learning_rate == doctest::Approx(0.2 / 5));
  CHECK(rates({.total_steps = 14, .kind = Kind::cosine})[6] > 0.1);
  auto const rule = [](Index step, Index steps) { return static_cast<double>(10 * steps + step); };
  CHECK(rates({.warmup_steps = 6, .rule = rule})[6] == 0.2 * 77);
}

TEST_CASE("one seed gives equal bits for any number of threads and workers") {
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

TEST_CASE("an exception of an observer ends the run, and the trainer can be used again") {
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

TEST_CASE("without a number of epochs there are as many as the steps need, and with one no more") {
  auto loader = line::loader(20, 8);  // 3 steps per epoch
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const record = trainer.fit(loader, {.epochs = 0, .max_steps = 10});
  CHECK(record.steps == 10);
  CHECK(record.epoch_seconds.size() == 4);
  CHECK(trainer.fit(loader, {.epochs = 2, .max_steps = 10}).steps == 6);
  CHECK(trainer.fit(loader, {.epochs = 0}).steps == 0);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, {.evaluate_every_steps = 2}),
                       "fit: evaluate_every_steps is 2, and there is no evaluation; pass one, or leave it out",
                       ConfigError);
}

TEST_CASE("evaluations without improvement end the run after the patience, under any policy") {
  auto fit = [](auto policy, train::Observer* recorder, FitOptions options) {
    auto loader = line::loader(22, 8), again = line::loader(22, 8);
    Trainer trainer{line::Model{}, sgd(), policy};
    options.observers = {recorder};
    return trainer.fit(loader, train::Evaluation{again, train::Accuracy{&line::Point::label}}, options);
  };
  auto each = [&](auto policy) {
    Recorder recorder, never;
    auto const record = fit(policy, &recorder, {.epochs = 40, .patience = 3, .best_by = "accuracy"});
    auto const& all = recorder.evaluations;
    REQUIRE(all.size() >= 4);
    CHECK(all.size() < 40);
    auto const best = all.size() - 4;
    CHECK(all[best].best);
    CHECK(all[best].metrics[0].second == 1);  // from here on nothing can be better
    for (auto later = best + 1; later < all.size(); ++later) CHECK_FALSE(all[later].best);
    CHECK(record.evaluations.size() == all.size());
    CHECK(record.steps == recorder.steps.back().step);
    CHECK(record.epoch_seconds.size() == all.size());
    CHECK(recorder.finished == 1);
    fit(policy, &never, {.epochs = 40, .best_by = "accuracy"});
    CHECK(never.evaluations.size() == 40);
    Recorder some, none;
    fit(policy, &some, {.epochs = 5, .evaluate_every_epochs = 2});
    std::vector<Index> epochs;
    for (auto const& report : some.evaluations) epochs.push_back(report.epoch);
    CHECK(epochs == std::vector<Index>{1, 3, 4});  // and the last
    Recorder steps, alone;
    auto const often = fit(policy, &steps, {.epochs = 3, .evaluate_every_steps = 4});
    std::vector<Index> at;
    for (auto const& report : steps.evaluations) at.push_back(report.step);
    auto const last = often.steps;
    std::vector<Index> expected;
    for (Index step = 4; step < last; step += 4) expected.push_back(step);
    expected.push_back(last);
    CHECK(at == expected);
    CHECK(often.epoch_seconds.size() == 3);
    fit(policy, &alone, {.epochs = 3, .evaluate_every_epochs = 0});  // it does not change what is learned
    REQUIRE(alone.steps.size() == steps.steps.size());
    CHECK(alone.steps.back().loss == steps.steps.back().loss);
    fit(policy, &none, {.epochs = 5, .evaluate_every_epochs = 0});
    CHECK(none.evaluations.empty());
  };
  each(parallel::SingleDevice{.threads = 1});
  each(parallel::DataParallel{.devices = 2, .threads = 1});
}

TEST_CASE("the learning rate falls if evaluations stop improving, after the schedule") {
  Recorder recorder;
  auto loader = line::loader(8, 8), again = line::loader(8, 8);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 1e-30}, parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader, train::Evaluation{again},
              {.epochs = 6,
               .schedule = {.warmup_steps = 2},
               .plateau = {.patience = 2, .factor = 0.5},
               .observers = {&recorder}});
  std::vector<double> rates;
  for (auto const& report : recorder.steps) rates.push_back(report.learning_rate / 1e-30);
  CHECK(rates == std::vector<double>{0.5, 1, 1, 0.5, 0.5, 0.25});  // the first is the best: it falls after 3 and 5
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::NoEvaluation{}, {.plateau = {.patience = 3}}),
                       doctest::Contains("plateau.patience is 3, and there is no evaluation to wait for"), ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{again}, {.plateau = {.patience = 3, .factor = 1}}),
                       doctest::Contains("plateau.factor is 1; it must be at least 0 and below 1"), ConfigError);
}

TEST_CASE("gradients are timed from the arrival of the step's batch") {
  struct Watched {
    double* last;  // when a sample was made
    [[nodiscard]] Index size() const { return 8; }
    [[nodiscard]] line::Point get(Index) const {
      *last = Clock::seconds();
      return {1, 2, 1};
    }
  };
  double last = 0;
  data::DataLoader loader{
      Watched{&last}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 8, .workers = 0}};
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const record = trainer.fit(loader, {.epochs = 2});
  CHECK(record.pass_began >= last);
  REQUIRE(record.session.buckets.size() == 1);
  CHECK(record.session.buckets[0].ready >= record.pass_began);
}

TEST_CASE("judges that cannot be evaluated are refused before any training") {
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  train::Evaluation const evaluation{again, train::Accuracy{&line::Point::label}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader, evaluation, {.best_by = "f1"}),
                       "fit: evaluations are judged by \"f1\", which they do not measure; name one of loss, accuracy",
                       ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::NoEvaluation{}, {.patience = 3}),
                       doctest::Contains("patience is 3, and there is no evaluation to wait for"), ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, evaluation, {.evaluate_every_epochs = 0, .patience = 3}),
                       doctest::Contains("patience is 3, and there is no evaluation to wait for"), ConfigError);
  auto const twice =
      train::Evaluation{again, train::Accuracy{&line::Point::label}, train::Accuracy{&line::Point::label}};
  CHECK_THROWS_WITH_AS(static_cast<void>(trainer.evaluate(train::Evaluation{again, Growing{}})),
                       doctest::Contains("the metric growing had 0 totals and now has "), ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, twice),
                       doctest::Contains("a metric is called \"accuracy\", a name that another"), ConfigError);
  struct Seconds : train::Accuracy<line::Point, int> {
    using train::Accuracy<line::Point, int>::Accuracy;
    static constexpr char const* name() noexcept { return "seconds"; }
  };
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{again, Seconds{&line::Point::label}}),
                       doctest::Contains("a metric is called \"seconds\""), ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{loader}), doctest::Contains("make a second one"),
                       ConfigError);
  CHECK(trainer.values()[0] == 0);
}

TEST_CASE("a mean over no samples is refused, not reported as 0") {
  auto loader = line::loader(8, 4), empty = line::loader(0, 4);
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  train::Evaluation const evaluation{empty, train::Accuracy{&line::Point::label}};
  CHECK_THROWS_WITH_AS(trainer.evaluate(evaluation), doctest::Contains("evaluate on: 0 samples give no step"),
                       DataError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, evaluation), doctest::Contains("nothing to evaluate on"), DataError);
  CHECK(trainer.values()[0] == 0);
}

TEST_CASE("a dry run computes a batch and one evaluation batch, and learns and reports nothing") {
  auto const check = [](auto policy) {
    auto loader = line::loader(22, 4), again = line::loader(22, 5);
    Trainer trainer{line::Model{}, sgd(), policy};
    Recorder recorder;
    FitOptions options{.epochs = 3, .observers = {&recorder}, .dry_run = true};
    train::Evaluation const evaluation{again, train::Accuracy{&line::Point::label}};
    auto const record = trainer.fit(loader, evaluation, options);
    CHECK(record.steps == 0);
    CHECK(trainer.values()[0] == 0);
    CHECK(record.session.peak_bytes_per_device.size() == static_cast<std::size_t>(policy.shards()));
    CHECK(record.session.peak_bytes_per_device[0] > 3 * sizeof(float));
    CHECK(recorder.starts.size() + recorder.steps.size() + recorder.evaluations.size() == 0);
    CHECK(recorder.finished == 0);
    CHECK(record.data_wait_seconds > 0);
    options.dry_run = false;
    CHECK(trainer.fit(loader, evaluation, options).evaluations.size() == 3);

    auto fresh_loader = line::loader(22, 4), fresh_again = line::loader(22, 5);
    Trainer fresh{line::Model{}, sgd(), policy};
    fresh.fit(fresh_loader, train::Evaluation{fresh_again}, {.epochs = 3});
    CHECK(fresh.values()[0] == trainer.values()[0]);
  };
  check(parallel::SingleDevice{.threads = 1});
  check(parallel::DataParallel{.devices = 2, .threads = 1});
}

TEST_CASE("training starts from saved parameters, on every device") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(10, 5);
  Trainer first{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  first.fit(loader, {.epochs = 2});
  first.save(folder / "p", {{"of", "the first"}});
  REQUIRE(first.values()[0] != 0);
  Trainer second{line::Model{}, sgd(), parallel::DataParallel{.devices = 3, .threads = 1}};
  CHECK(second.load(folder / "p") == train::Metadata{{"of", "the first"}});
  CHECK(second.values()[0] == first.values()[0]);
  auto again = line::loader(10, 5);
  auto const evaluate = [&](auto& trainer) { return trainer.evaluate(train::Evaluation{again}).loss; };
  CHECK(evaluate(second) == doctest::Approx(evaluate(first)));
  CHECK_THROWS_AS(second.load(folder / "none"), DataError);
  CHECK(second.values()[0] == first.values()[0]);
}

namespace {
struct WithTeacher : line::Model {
  nn::Frozen<line::Model> teacher{line::Model{}};
  void visit(auto&& each) {
    each("teacher", teacher);
    each("student", static_cast<line::Model&>(*this));
  }
};
float value_of(auto const& trainer, std::string_view name) {
  for (auto const& entry : trainer.layout().entries())
    if (entry.name == name) return trainer.values()[static_cast<std::size_t>(entry.offset)];
  return -1;
}
}  // namespace

TEST_CASE("a part is loaded from a file in which it is a model, and a model from one in which it is a part") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(10, 5);
  Trainer alone{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  alone.fit(loader, {.epochs = 2});
  alone.save(folder / "alone");
  Trainer both{WithTeacher{}, sgd(), parallel::DataParallel{.devices = 2, .threads = 1}};
  CHECK_THROWS_WITH_AS(both.load(folder / "alone", "teacher."),
                       doctest::Contains("has no parameter \"teacher.slope\"; it was saved from another model, but has "
                                         "\"slope\": load(path, prefix, in_file) reads one as the other"),
                       DataError);
  both.load(folder / "alone", "teacher.", "");
  CHECK(value_of(both, "student.slope") == 0);
  both.fit(loader, {.epochs = 1});
  CHECK(value_of(both, "teacher.slope") == value_of(alone, "slope"));
  both.save(folder / "both");
  CHECK_THROWS_WITH_AS(alone.load(folder / "both"),
                       doctest::Contains("it was saved from another model, but has \"teacher."), DataError);
  alone.load(folder / "both", [](std::string_view name) { return "teacher." + std::string(name); });
  CHECK(value_of(alone, "slope") == value_of(both, "teacher.slope"));
  alone.fit(loader, {.epochs = 1});
  alone.save(folder / "alone");
  both.load(folder / "alone", [](std::string_view name) { return name == "teacher.slope" ? "slope" : ""; });
  CHECK(value_of(both, "teacher.slope") == value_of(alone, "slope"));
  CHECK(value_of(both, "student.slope") != value_of(alone, "slope"));
  CHECK_THROWS_WITH_AS(
      alone.load(folder / "both", [](std::string_view) { return std::string(); }),
      doctest::Contains("the function of names returns no name for any parameter of the model; its first "
                        "parameter is \"slope\""),
      ConfigError);
  CHECK_THROWS_WITH_AS(alone.load(folder / "both", [](std::string_view) { return "w"; }),
                       doctest::Contains("has no parameter \"w\"; it was saved from another model; the "
                                         "nearest is \"teacher.slope\": if only names differ, pass a function of "
                                         "names to load(path, names)"),
                       DataError);
  alone.load(folder / "both", "", "student.");
  CHECK(value_of(alone, "slope") == value_of(both, "student.slope"));
  CHECK(value_of(alone, "slope") != value_of(both, "teacher.slope"));
}

TEST_CASE("the first of several ranks saves") {
  lockstep_test::TemporaryFolder const folder;
  launch::run({.threads = 2}, [&](launch::World& world) {
    Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{comm::connect(world)}};
    trainer.save(folder / std::to_string(world.rank));
    train::export_parameters(trainer, folder / "exported " + std::to_string(world.rank), "");
    return 0;
  });
  CHECK(folder.entries() == 2);
}

TEST_CASE("parameters are exported in the form of another program's file, and load from there") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(10, 5);
  Trainer trainer{line::Model{}, sgd(), parallel::DataParallel{.devices = 2, .threads = 1}};
  auto const names = [](std::string_view name) { return "module." + std::string(name); };
  train::export_parameters(trainer, folder / "like", names);
  trainer.fit(loader, {.epochs = 2});
  train::export_parameters(trainer, folder / "p", names, {.like = folder / "like", .metadata = {{"of", "the other"}}});
  Trainer loaded{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK(loaded.load(folder / "p", names) == train::Metadata{{"format", "pt"}, {"of", "the other"}});
  CHECK(loaded.values()[0] == trainer.values()[0]);
}

TEST_CASE("a file saved by the first rank can be loaded by all at once, however late it is") {
  lockstep_test::TemporaryFolder const folder;
  launch::run({.threads = 2}, [&](launch::World& world) {
    Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{comm::connect(world)}};
    if (world.rank == 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    trainer.save(folder / "model.safetensors");
    trainer.load(folder / "model.safetensors");
    CHECK(trainer.values()[0] == 0);
    return 0;
  });
}

TEST_CASE("ranks that evaluate on different samples are refused") {
  auto const run = [] {
    launch::run({.threads = 2}, [](launch::World& world) {
      auto loader = line::loader(world.rank == 0 ? 8 : 9, 4);
      Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{comm::connect(world)}};
      static_cast<void>(trainer.evaluate(train::Evaluation{loader}));
      return 0;
    });
  };
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("rank 1 has samples of the evaluation = 9, but"), CollectiveMismatch);
}

TEST_CASE("ranks that load different parameters are refused") {
  lockstep_test::TemporaryFolder const folder;
  launch::Options ranks;
  ranks.threads = 2;
  auto const load = [&](bool equal) {
    launch::run(ranks, [&](launch::World& world) {
      Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{comm::connect(world)}};
      auto const path = folder / std::to_string(world.rank);
      std::vector<float> values(trainer.values().begin(), trainer.values().end());
      values[0] = equal ? 3 : static_cast<float>(world.rank);
      train::save_parameters(path, trainer.layout(), values);
      trainer.load(path);
      CHECK(trainer.values()[0] == 3);
      return 0;
    });
  };
  CHECK_NOTHROW(load(true));
  CHECK_THROWS_WITH_AS(load(false), doctest::Contains("\"slope\""), CollectiveMismatch);
}

namespace {
/// Two classes by a bias alone, for points with any label.
class TwoClasses {
 public:
  void visit(auto&& each) { each("map", map_); }
  auto predict(auto& context, auto const& batch) const {
    return map_.forward(context, context.input(batch[&line::Point::x].values.reshape(Extents<2>{batch.rows(), 1})));
  }
  template <class Context>
  nn::LossOf<Context> loss(Context& context, auto const& logits, auto const& batch) const {
    return nn::cross_entropy(context, logits, batch[&line::Point::label]);
  }

 private:
  nn::Linear map_{1, 2};
};
/// Points with names, one of which has an additional label.
struct NamedPoints {
  Index wrong;
  Index size() const { return 24; }
  line::Point get(Index i) const { return {static_cast<float>(i), 0, i == wrong ? 2 : 1}; }
  std::string name(Index i) const { return "point " + std::to_string(i); }
};
}  // namespace

TEST_CASE("an error in a layer names the dataset's sample, in training and evaluation, on any device") {
  auto loader_of = [](Index wrong) {
    return data::DataLoader{
        NamedPoints{wrong}, data::ShuffledSampler{.seed = 3}, data::PadCollate{}, {.batch_size = 4}};
  };
  auto refuses = [&](auto policy) {
    for (Index wrong : {0, 5, 23}) {
      auto bad = loader_of(wrong), good = loader_of(-1);
      auto const name =
          " of the loader's batch is sample " + std::to_string(wrong) + " (point " + std::to_string(wrong) + ")";
      Trainer trainer{TwoClasses{}, sgd(), policy};
      CHECK_THROWS_WITH_AS(trainer.fit(bad), doctest::Contains(name.c_str()), RowError);
      CHECK_THROWS_WITH_AS(trainer.evaluate(train::Evaluation{bad, train::Accuracy{&line::Point::label}}),
                           doctest::Contains(name.c_str()), RowError);
      trainer.fit(good);  // the control
    }
  };
  refuses(parallel::SingleDevice{.threads = 1});
  refuses(parallel::DataParallel{.devices = 3, .threads = 1});
}

TEST_CASE(
    "a replica that has computed with other numbers ends the run at the next check, although an update corrects it") {
  for (Index const every : {0, 1, 2, 3}) {
    CAPTURE(every);
    auto loader = line::loader(16, 2);
    Trainer trainer{line::Model{}, sgd(), Faulty{}};
    auto const fit = [&] { trainer.fit(loader, train::NoEvaluation{}, {.epochs = 1, .check_replicas_every = every}); };
    if (every == 1 || every == 3)
      CHECK_THROWS_WITH_AS(
          fit(), doctest::Contains("after step 2 the parameter \"slope\" of device 1 differs from device 0's"),
          CollectiveMismatch);
    else
      CHECK_NOTHROW(fit());
  }
}

TEST_CASE("a record has the last epoch's mean loss, every evaluation in its place, and the used resources") {
  Recorder recorder;
  auto loader = line::loader(22, 4), again = line::loader(22, 5);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0}, parallel::DataParallel{.devices = 2, .threads = 1}};
  auto const record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 2, .observers = {&recorder}});
  CHECK(record.parallel == "dp");
  CHECK(record.world_size == 1);
  CHECK(record.devices == 2);
  CHECK(record.effective_batch_size == 8);
  CHECK(record.parameters == 1);
  CHECK(record.samples == 44);
  CHECK(record.session.unused_parameters.empty());
  REQUIRE(record.evaluations.size() == 2);
  REQUIRE(recorder.evaluations.size() == 2);
  for (std::size_t epoch : {0u, 1u}) {
    CHECK(recorder.evaluations[epoch].epoch == static_cast<Index>(epoch));
    CHECK(recorder.evaluations[epoch].step == static_cast<Index>(epoch + 1) * 3);
  }
  CHECK(record.train_loss == doctest::Approx(record.evaluations[1].loss));  // nothing was learned in between
  CHECK(recorder.steps[4].epoch == 1);
  CHECK(recorder.steps[2].samples == 22);
  CHECK(record.epoch_seconds.size() == 2);

  Recorder learned;
  Trainer learner{line::Model{}, sgd(), parallel::DataParallel{.devices = 2, .threads = 1}};
  auto const second = learner.fit(loader, {.epochs = 2, .observers = {&learned}});
  auto const& steps = learned.steps;
  CHECK(steps[3].loss < steps[0].loss);
  CHECK(second.train_loss == doctest::Approx((8 * steps[3].loss + 8 * steps[4].loss + 6 * steps[5].loss) / 22));
}

TEST_CASE("an epoch's seconds are its own, and each rank's are its measured ones") {
  struct Slow : Recorder {
    std::vector<double> evaluated;
    void step(train::StepReport const& report) override {
      if (report.step == 1) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
    void evaluation(train::EvaluationReport const&) override { evaluated.push_back(Clock::seconds()); }
  };
  launch::Options options;
  options.threads = 2;
  launch::run(options, [](launch::World& world) {
    Slow slow;
    auto loader = line::loader(8, 2), again = line::loader(8, 2);
    Trainer trainer{line::Model{}, sgd(), parallel::DistributedDataParallel{comm::connect(world)}};
    auto const record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 2, .observers = {&slow}});
    CHECK(record.epoch_seconds[0] >= 0.05);
    CHECK(record.epoch_seconds[1] < slow.evaluated[1] - slow.evaluated[0]);
    REQUIRE(record.ranks.size() == 2);
    auto const& own = record.ranks[static_cast<std::size_t>(world.rank)];
    auto const& phases = record.phases;
    CHECK(own.data_wait == record.data_wait_seconds);
    CHECK(own.compute == phases.forward + phases.backward + phases.pass);
    CHECK(own.communication == phases.communication);
    CHECK(own.optimizer == phases.optimizer);
    CHECK(own.communication != own.optimizer);
    return 0;
  });
}

TEST_CASE("if a sampler chooses the batches, a step counts as many samples as the mean batch has") {
  std::vector<std::int32_t> lengths(20, 1);
  std::fill_n(lengths.begin(), 10, 8);  // ten batches of one sample, one of eight and one of two
  data::DataLoader loader{data::InMemoryDataset{line::points(20)},
                          data::TokenBudgetSampler{.lengths = lengths, .tokens = 8}, data::PadCollate{}};
  REQUIRE(loader.steps() == 12);
  Recorder recorder;
  Trainer trainer{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const record = trainer.fit(loader, {.epochs = 2, .observers = {&recorder}});
  REQUIRE(recorder.steps.size() == 24);
  for (Index step = 0; step < 24; ++step)
    CHECK(recorder.steps[static_cast<std::size_t>(step)].samples == (step + 1) * 20 / 12);
  CHECK(record.samples == 40);
}

namespace {
/// A loss that omits its gradient, and counts no sample whose x is not above `from`.
struct Forgetful {
  line::Model line;
  float from = 0;
  void visit(auto&& each) { each("line", line); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const y = line.line(context, batch);
    nn::Loss<HostSpace> loss;
    for (Index i = 0; i < y.extent(0); ++i)
      if (batch[&line::Point::x].values(i) > from) loss += {y.value(i), 1.0};
    return loss;
  }
};
}  // namespace

TEST_CASE("a loss without a gradient ends the run with its first step that has a weight, under any policy") {
  auto const fit = [](auto policy, float from) {
    data::DataLoader loader{
        data::InMemoryDataset{line::points(8)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
    Trainer trainer{Forgetful{{}, from}, sgd(), std::move(policy)};
    trainer.fit(loader, {.epochs = 2});
  };
  CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, 0),
                       doctest::Contains("step 1 gave no parameter a gradient"), Error);
  CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, 0.5f),
                       doctest::Contains("step 3 gave no parameter a gradient"), Error);
  CHECK_THROWS_WITH_AS(fit(parallel::DataParallel{.devices = 2, .threads = 1}, 0.5f),
                       doctest::Contains("step 2 gave no parameter a gradient"), Error);
  CHECK_THROWS_WITH_AS(fit(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}, 0.5f),
                       doctest::Contains("step 1 gave no parameter a gradient"), Error);
}

namespace {
/// A loss that omits its weight.
struct Weightless : line::Model {
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return {line::Model::forward(context, batch).sum};
  }
};
}  // namespace

TEST_CASE("a loss without a weight ends the run with its first epoch, or with the run, under any policy") {
  auto const fit = [](auto policy, FitOptions const& options) {
    data::DataLoader loader{
        data::InMemoryDataset{line::points(8)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
    Trainer trainer{Weightless{}, sgd(), std::move(policy)};
    trainer.fit(loader, options);
  };
  CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, {.epochs = 2}),
                       doctest::Contains("training: up to step 4 the losses of the epoch have the sum "), Error);
  CHECK_THROWS_WITH_AS(fit(parallel::SingleDevice{.threads = 1}, {.max_steps = 3}),
                       doctest::Contains(" and the weight 0, so nothing was learned; a loss returns both: "), Error);
  CHECK_THROWS_WITH_AS(fit(parallel::DataParallel{.devices = 2, .threads = 1}, {.epochs = 2}),
                       doctest::Contains("up to step 2"), Error);
  data::DataLoader none{
      data::InMemoryDataset{line::points(8)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 2}};
  Trainer counts_none{Forgetful{{}, 2}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(counts_none.fit(none), doctest::Contains("have the sum 0 and the weight 0"), Error);
}

TEST_CASE("an evaluation with zero weight is refused, not reported as a loss of 0") {
  auto const message = "evaluate: the losses over 8 samples have the sum 0 and the weight 0";
  auto const evaluated = [&](auto policy) {
    auto loader = line::loader(8, 4);
    Trainer trainer{Forgetful{{}, 2}, sgd(), std::move(policy)};
    CHECK_THROWS_WITH_AS(trainer.evaluate(train::Evaluation{loader}), doctest::Contains(message), DataError);
    Trainer counts_half{Forgetful{{}, 0.5f}, sgd(), parallel::SingleDevice{.threads = 1}};
    CHECK(counts_half.evaluate(train::Evaluation{loader}).samples == 8);
  };
  evaluated(parallel::SingleDevice{.threads = 1});
  evaluated(parallel::DataParallel{.devices = 2, .threads = 1});
  launch::run({.threads = 2}, [&](launch::World& world) {
    evaluated(parallel::DistributedDataParallel{comm::connect(world), 256, 1});
    return 0;
  });
  // A dry run processes one batch of them.
  data::DataLoader first_has_none{
      data::InMemoryDataset{line::points(8)}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
  auto loader = line::loader(8, 4);
  Trainer trainer{Forgetful{{}, 0.5f}, sgd(), parallel::SingleDevice{.threads = 1}};
  trainer.fit(loader, train::Evaluation{first_has_none}, {.dry_run = true});
}

TEST_CASE("a loss that is not finite ends the run, with the step") {
  auto loader = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 1e30}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::NoEvaluation{}, {.epochs = 2}),
                       doctest::Contains("the loss of step 3 is inf; lower the learning rate, warm it up, clip the "
                                         "gradient, or check samples by data::FiniteCheck"),
                       Error);
}

TEST_CASE("a loss that is not finite on one rank or device names it, and leaves the parameters unchanged") {
  auto points = line::points(16);
  points[13].y = std::nanf("");  // in the second batch of 8, the second rank's
  auto const end_of = [&](auto policy) -> std::string {
    data::DataLoader loader{
        data::InMemoryDataset{points}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0.1}, std::move(policy)};
    try {
      trainer.fit(loader, {.epochs = 1});
    } catch (Error const& error) {
      CHECK(std::isfinite(trainer.values()[0]));
      data::Collated const batch{data::PadCollate{}, line::points(4)};
      std::vector const batches(static_cast<std::size_t>(trainer.split().count), batch.batch());
      CHECK(std::isfinite(trainer.step(batches).sum));  // it can be used again
      return error.what();
    }
    return "no error";
  };
  std::string const message = "training: the loss of step 2 is nan on ",
                    why = " 1 and nowhere else; sample 13 holds an infinity or a NaN in its member 1 (counted from 0)";
  CHECK(end_of(parallel::DataParallel{.devices = 2, .threads = 1}).starts_with(message + "device" + why));
  // It is in the second of four shards, which is the first device's.
  CHECK(end_of(parallel::Reproducible{parallel::DataParallel{.devices = 2, .threads = 1}, 4})
            .starts_with("training: the loss of step 1 is nan on device 0 and nowhere else"));
  std::vector<std::string> ends(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    ends[static_cast<std::size_t>(world.rank)] =
        end_of(parallel::DistributedDataParallel{comm::connect(world), 256, 1});
    return 0;
  });
  for (auto const& end : ends) CHECK(end.starts_with(message + "rank" + why));
}

namespace {
/// Its loss does not depend on its gradient.
struct Concealing : line::Model {
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    return {1, line::Model::forward(context, batch).weight};
  }
};
}  // namespace

TEST_CASE("a gradient that is not finite, if it is clipped, ends the run with the step, under any policy") {
  auto points = line::points(16);
  points[13].y = 3e38f;  // in the second batch of 8; twice that overflows float
  auto const fit = [&](auto policy) {
    data::DataLoader loader{
        data::InMemoryDataset{points}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
    auto const step = std::to_string(4 / policy.all_shards());
    Trainer trainer{Concealing{}, sgd(), std::move(policy)};
    auto const message = "training: the gradient of step " + step + " is not finite, although the loss is";
    CHECK_THROWS_WITH_AS(trainer.fit(loader, {.epochs = 3, .clip_norm = 1}), doctest::Contains(message.c_str()), Error);
    CHECK(std::isfinite(trainer.values()[0]));
    CHECK(trainer.values()[0] != 0);
  };
  fit(parallel::SingleDevice{.threads = 1});
  fit(parallel::DataParallel{.devices = 2, .threads = 1});
  for (bool const shards : {false, true})
    launch::run({.threads = 2}, [&](launch::World& world) {
      parallel::DistributedDataParallel policy{comm::connect(world), 256, 1};
      policy.shard_optimizer = shards;
      fit(std::move(policy));
      return 0;
    });
  auto loader = line::loader(8, 4);
  Trainer sound{line::Model{}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK(sound.fit(loader, {.epochs = 2, .clip_norm = 1e-3}).steps == 4);
}

namespace {

/// A line with a library layer, so that it runs in any precision.
class Affine {
 public:
  void visit(auto&& each) { each("map", map_); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const x = context.input(batch[&line::Point::x].values.reshape(Extents<2>{batch.rows(), 1}));
    return nn::mean_squared_error(context, map_.forward(context, x), batch[&line::Point::y]);
  }

 private:
  nn::Linear map_{1, 1};
};

struct HalfOutcome {
  std::vector<std::vector<float>> values;  // after each step
  std::vector<double> scales;
  train::RunRecord record;
};

/// Steps of four samples each; one, in any shard, has a gradient a hundred times the others'.
template <class Policy>
HalfOutcome fit_half(Policy policy, optim::LossScaler const& scaler, Index steps = 20) {
  std::vector<line::Point> points;
  for (int i = 0; i < 4; ++i) points.push_back({static_cast<float>(i + 1), i == 3 ? 100.0f : 1.0f, 0});
  data::DataLoader loader{data::InMemoryDataset{points},
                          data::SequentialSampler{},
                          data::PadCollate{},
                          {.batch_size = 4 / policy.all_shards()}};
  Trainer trainer{nn::InFloat16{Affine{}}, optim::AdamW{.learning_rate = 0.1}, std::move(policy), 3};
  HalfOutcome outcome;
  struct Watch final : train::Observer {
    decltype(trainer)* of = nullptr;
    HalfOutcome* to = nullptr;
    void step(train::StepReport const& report) override {
      to->values.emplace_back(of->values().begin(), of->values().end());
      to->scales.push_back(report.loss_scale);
    }
  } watch;
  watch.of = &trainer, watch.to = &outcome;
  outcome.record = trainer.fit(
      loader,
      {.epochs = steps, .clip_norm = 0.5, .loss_scaler = scaler, .check_replicas_every = 1, .observers = {&watch}});
  return outcome;
}

}  // namespace

TEST_CASE("in float16 a step whose gradients overflow on any device is skipped on all, and changes no bit") {
  optim::LossScaler const scaler{.start = 0x1p20, .growth_interval = 6};
  auto const single = fit_half(parallel::SingleDevice{.threads = 1}, scaler);
  auto const dp = fit_half(parallel::DataParallel{.devices = 2, .threads = 1}, scaler);
  std::vector<HalfOutcome> ranks(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    ranks[static_cast<std::size_t>(world.rank)] =
        fit_half(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, scaler);
    return 0;
  });
  CHECK(dp.values == ranks[0].values);
  CHECK(dp.values == ranks[1].values);
  for (auto const& other : {dp, ranks[0], ranks[1]}) {
    CHECK(other.scales == single.scales);
    CHECK(other.record.loss_scale == single.record.loss_scale);
  }
  int skipped = 0;
  for (std::size_t i = 1; i < 20; ++i) {
    bool const shrinks = single.scales[i] < single.scales[i - 1];
    CHECK((single.values[i] == single.values[i - 1]) == shrinks);
    CHECK((dp.values[i] == dp.values[i - 1]) == shrinks);
    skipped += shrinks;
  }
  CHECK(single.scales[0] == 0x1p19);
  CHECK(skipped > 10);  // 2 * 100 * 2^20 / 65504 is about 2^11.6; later it grows, and is too large again
  CHECK(skipped < 15);
  CHECK(single.scales[17] > single.scales[13]);
  REQUIRE(single.record.loss_scale);
  CHECK(single.record.loss_scale.skipped == skipped + 1);

  // Neither moments nor their count include skipped steps.
  auto const begins_there = fit_half(parallel::SingleDevice{.threads = 1}, {.start = 0x1p8}, 5);
  auto const at = std::find(single.scales.begin(), single.scales.end(), 0x1p8) - single.scales.begin() + 1;
  REQUIRE(begins_there.record.loss_scale.skipped == 0);
  for (std::size_t i = 0; i < 5; ++i) CHECK(single.values[static_cast<std::size_t>(at) + i] == begins_there.values[i]);
}

TEST_CASE("ranks with different loss scaling are refused by name") {
  auto const refused = [](auto const& train) {
    std::string printed;
    try {
      launch::run({.threads = 2}, [&](launch::World& world) {
        train(parallel::DistributedDataParallel{comm::connect(world), 256, 1}, world.rank);
        return 0;
      });
    } catch (CollectiveMismatch const& error) {
      printed = error.what();
    }
    return printed;
  };
  auto const with = [&](optim::LossScaler const& other) {
    return refused([&](auto policy, int rank) {
      static_cast<void>(fit_half(std::move(policy), rank == 0 ? optim::LossScaler{} : other));
    });
  };
  CHECK(with({}).empty());
  CHECK(with({.start = 8}).find("start of the loss scale = 8, but") != std::string::npos);
  CHECK(with({.growth = 4}).find("growth of the loss scale = 4, but") != std::string::npos);
  CHECK(with({.backoff = 0.25}).find("backoff of the loss scale = 0.25, but") != std::string::npos);
  CHECK(with({.growth_interval = 7}).find("until the loss scale grows = 7, but") != std::string::npos);
  auto const unlike = refused([](auto policy, int rank) {
    if (rank == 0)
      Trainer{nn::InFloat16{Affine{}}, sgd(), std::move(policy)};
    else
      Trainer{Affine{}, sgd(), std::move(policy)};
  });
  CHECK(unlike.find("rank 1 has activations = float32, but rank 0 has activations = float16") != std::string::npos);
}

TEST_CASE("if float16 cannot represent the gradients at any loss scale, the run ends with an error") {
  auto points = line::points(8);
  points[5].y = 1e5f;  // a finite loss, and a gradient of about -2e5
  auto const fit = [&](auto policy) {
    data::DataLoader loader{
        data::InMemoryDataset{points}, data::SequentialSampler{}, data::PadCollate{}, {.batch_size = 4}};
    Recorder recorder;
    Trainer trainer{nn::InFloat16{Affine{}}, sgd(), std::move(policy)};
    CHECK_THROWS_WITH_AS(
        trainer.fit(loader, {.epochs = 20, .loss_scaler = {.start = 0x1p4}, .observers = {&recorder}}),
        doctest::Contains("the loss scale is down at 1, so that 5 steps were skipped, the last of them step 5"), Error);
    CHECK(recorder.steps.size() == 4);
  };
  fit(parallel::DataParallel{.devices = 2, .threads = 1});
  launch::run({.threads = 2}, [&](launch::World& world) {
    fit(parallel::DistributedDataParallel{comm::connect(world), 256, 1});
    return 0;
  });
}

TEST_CASE("in float32 nothing is scaled, and a scaler out of range is refused if it is used") {
  auto loader = line::loader(8, 4);
  Recorder recorder;
  Trainer trainer{Affine{}, sgd(), parallel::SingleDevice{.threads = 1}};
  auto const record = trainer.fit(loader, {.loss_scaler = {.start = 3}, .observers = {&recorder}});
  CHECK_FALSE(record.loss_scale);
  CHECK(recorder.steps[0].loss_scale == 0);
  Trainer half{nn::InFloat16{Affine{}}, sgd(), parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(half.fit(loader, {.loss_scaler = {.start = 3}}), doctest::Contains("LossScaler: start is 3;"),
                       ConfigError);
}
