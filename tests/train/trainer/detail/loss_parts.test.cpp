// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/detail/loss_parts.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/loss/named_loss.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/logs/csv_log.hpp>
#include <lockstep/train/logs/metrics_log.hpp>
#include <lockstep/train/metrics/loss_part.hpp>
#include <lockstep/train/trainer/trainer.hpp>
#include <lockstep/train/trainer/trainer_state.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"

using namespace lockstep;

namespace {

/// The squared error; a part with weight 2 for each point and a value of 3 times its x, in two losses of one name; and
/// a part of the points above 1, of which a batch may have none.
struct Model : line::Model {
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const error = nn::named_loss(context, "error", line::Model::forward(context, batch));
    nn::Loss<HostSpace> far, high;
    for (float x : batch[&line::Point::x].values.span()) far += {1.5 * static_cast<double>(x), 1};
    for (auto label : batch[&line::Point::label].values.span())
      if (label == 1) high += {1.5, 1};
    nn::named_loss(context, "high", high);
    return error.with_auxiliary(nn::named_loss(context, "far", far))
        .with_auxiliary(nn::named_loss(context, "far", far));
  }
};

struct Recorder final : train::Observer {
  std::vector<train::StepReport> steps;
  std::vector<std::string> names;
  void start(train::StartReport const& report) override { names = report.loss_parts; }
  void step(train::StepReport const& report) override { steps.push_back(report); }
};

constexpr Index samples = 14;

void check_equal(std::vector<train::StepReport> const& a, std::vector<train::StepReport> const& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t part = 0; part < 3; ++part) {
      auto const x = a[i].loss_parts[part].second, y = b[i].loss_parts[part].second;
      CHECK((std::isnan(x) ? std::isnan(y) : x == doctest::Approx(y)));
    }
}

std::vector<train::StepReport> steps_of(auto policy, Index batch_size, Index accumulation) {
  auto loader = line::loader(samples, batch_size);
  Trainer trainer{Model{}, optim::SGD{.learning_rate = 0.1}, std::move(policy)};
  Recorder recorder;
  trainer.fit(
      loader,
      {.epochs = 3, .accumulation = accumulation, .loss_parts = {"far", "error", "high"}, .observers = {&recorder}});
  CHECK(recorder.names == std::vector<std::string>{"far", "error", "high"});
  return recorder.steps;
}

std::vector<train::StepReport> steps_of_ranks(int ranks, Index batch_size) {
  std::vector<train::StepReport> of_first, of_last;
  launch::run({.threads = ranks}, [&](launch::World& world) {
    bool const is_first = world.rank == 0, is_last = world.rank == ranks - 1;
    auto const steps = steps_of(parallel::DistributedDataParallel{comm::connect(world), 0, 1}, batch_size, 1);
    if (is_first) of_first = steps;
    if (is_last) of_last = steps;
    return 0;
  });
  REQUIRE(of_first.size() == of_last.size());
  check_equal(of_first, of_last);
  return of_first;
}

/// Checks the parts against the loss, and the mean of "far" over each whole epoch.
void check(std::vector<train::StepReport> const& steps) {
  double far = 0, xs = 0;
  Index before = 0;
  for (auto const& step : steps) {
    REQUIRE(step.loss_parts.size() == 3);
    CHECK(step.loss_parts[0].first == "far");
    CHECK(step.loss_parts[1].first == "error");
    CHECK(step.loss == doctest::Approx(step.loss_parts[1].second + 2 * step.loss_parts[0].second));
    CHECK((step.loss_parts[2].second == 1.5 || std::isnan(step.loss_parts[2].second)));
    far += step.loss_parts[0].second * static_cast<double>(step.samples - before);
    before = step.samples;
  }
  for (auto const& point : line::points(samples)) xs += 1.5 * static_cast<double>(point.x);
  CHECK(far == doctest::Approx(3 * xs));  // of three epochs
}

}  // namespace

TEST_CASE("logged steps have the means of the parts over all micro-steps, devices, shards and ranks") {
  auto const single = steps_of(parallel::SingleDevice{.threads = 1}, 4, 1);
  check(single);
  auto const narrow = steps_of(parallel::SingleDevice{.threads = 1}, 1, 1);
  check(narrow);
  Index without_high = 0;
  for (auto const& step : narrow) without_high += std::isnan(step.loss_parts[2].second);
  CHECK(without_high == 3 * samples / 2);  // half of the points, in three epochs

  check_equal(steps_of(parallel::SingleDevice{.threads = 1}, 2, 2), single);
  check_equal(steps_of(parallel::DataParallel{.devices = 2, .threads = 1}, 2, 1), single);
  check_equal(steps_of(parallel::DataParallel{.devices = 4, .threads = 1}, 1, 1), single);
  check_equal(steps_of(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}, 2, 1), single);
  check_equal(steps_of(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 2}, 1, 2), single);
  check_equal(steps_of(parallel::Reproducible{parallel::DataParallel{.devices = 2, .threads = 1}, 4}, 1, 1), single);
  check_equal(steps_of_ranks(2, 2), single);
  check_equal(steps_of_ranks(4, 1), single);
}

TEST_CASE("without the option, no step has parts; with it, only logged steps have them") {
  auto loader = line::loader(4, 1);
  Trainer trainer{Model{}, optim::SGD{.learning_rate = 0.01}, parallel::SingleDevice{.threads = 1}};
  Recorder without, with;
  trainer.fit(loader, {.epochs = 2, .observers = {&without}});
  for (auto const& step : without.steps) CHECK(step.loss_parts.empty());
  trainer.fit(loader, {.epochs = 60, .loss_parts = {"far"}, .observers = {&with}});
  REQUIRE(with.steps.size() == 240);
  for (auto const& step : with.steps) CHECK(step.loss_parts.empty() == !step.is_logged());
  CHECK(with.steps[100].loss_parts.empty());
}

TEST_CASE("logs have the parts; a part that evaluations measure too has one column") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(8, 8), again = line::loader(8, 8);
  Trainer trainer{Model{}, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  train::MetricsLog json(folder / "metrics.jsonl");
  train::CsvLog csv(folder / "metrics.csv");
  trainer.fit(loader, train::Evaluation{again, train::LossPart{"far"}},
              {.loss_parts = {"error", "far"}, .observers = {&json, &csv}});
  auto const lines = lockstep_test::read_file(folder / "metrics.jsonl");
  auto const table = lockstep_test::read_file(folder / "metrics.csv");
  auto const far = 1.5 * 4.5 / 8;  // the mean of x is 4.5 / 8
  CHECK(lines.find("\"kind\":\"step\"") < lines.find("\"error\":1.59375,\"far\":" + std::to_string(far).substr(0, 7)));
  CHECK(lines.find("\"kind\":\"evaluation\"") < lines.rfind("\"far\":" + std::to_string(far).substr(0, 7)));
  CHECK(table.starts_with("kind,"));
  CHECK(table.find("gradient_norm,far,error\n") != std::string::npos);
  CHECK(table.find(",0.84375,1.59375\n") != std::string::npos);  // the step's row
  CHECK(table.ends_with(",0.84375,\n"));                         // the evaluation's
}

TEST_CASE("a loop of one's own asks for the parts of the last step") {
  for (int devices : {1, 2}) {
    auto loader = line::loader(4, 2);
    Trainer trainer{Model{}, optim::SGD{.learning_rate = 0.1},
                    parallel::DataParallel{.devices = devices, .threads = 1}};
    loader.start(trainer.split(), 0, 0, 1);
    for (Index step = 0; step < loader.steps(trainer.split()); ++step) {
      auto const loss = trainer.step(loader.next());
      auto const parts = trainer.loss_parts({"error", "far"});
      REQUIRE(parts.size() == 2);
      CHECK(loss.mean() == doctest::Approx(parts[0].second + 2 * parts[1].second));
    }
  }
}

TEST_CASE("a part that no rank names is an error on all ranks, with the names that there are") {
  std::vector<std::string> errors(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    auto loader = line::loader(8, 2);
    Trainer trainer{Model{}, optim::SGD{}, parallel::DistributedDataParallel{comm::connect(world)}};
    try {
      trainer.fit(loader, {.loss_parts = {"error", "kl"}});
    } catch (ConfigError const& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  for (auto const& error : errors)
    CHECK(error ==
          "loss_parts: the model's loss of a step has no part \"kl\"; it names \"error\", \"high\", \"far\". Name the "
          "part when the loss is computed, for every batch: nn::named_loss(context, \"kl\", loss)");
}

TEST_CASE("names that are not unique in logs are refused before the first step") {
  auto loader = line::loader(4, 2);
  Trainer trainer{Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  for (auto const& names : {std::vector<std::string>{"far", "far"}, std::vector<std::string>{"loss"}})
    CHECK_THROWS_WITH_AS(trainer.fit(loader, {.loss_parts = names}),
                         doctest::Contains(("fit: loss_parts names \"" + names[0] + "\", a name that").c_str()),
                         ConfigError);
  CHECK(trainer.state().done.steps == 0);
}

TEST_CASE("parameters that are not finite at a checkpoint are the error of all ranks, not a lost connection") {
  lockstep_test::TemporaryFolder const folder;
  std::vector<std::string> errors(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    auto loader = line::loader(8, 2);
    Trainer trainer{Model{}, optim::SGD{.learning_rate = 3e38},
                    parallel::DistributedDataParallel{comm::connect(world), 0, 1}};
    try {
      trainer.fit(loader, {.epochs = 2, .checkpoints = {.folder = folder / "run", .every = 1}, .loss_parts = {"far"}});
    } catch (Error const& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
    return 0;
  });
  for (auto const& error : errors) {
    CAPTURE(error);
    CHECK(error.starts_with("training: after step 1 the parameter \"slope\" is inf"));
  }
}

namespace {
/// Names "early" in the first two steps of a run only.
struct Early : line::Model {
  explicit Early(int* steps) : steps_(steps) {}
  template <class Context>
  nn::LossOf<Context> forward(Context& context, auto const& batch) const {
    auto const error = line::Model::forward(context, batch);
    if (context.mode() == nn::Mode::training && (*steps_)++ < 2) nn::named_loss(context, "early", error);
    return error;
  }

 private:
  int* steps_;
};

/// Trains up to step `last`, from a checkpoint after step `first` unless it is 0. A resumed run has no early steps.
std::vector<train::StepReport> early_steps(std::string const& folder, Index first, Index last,
                                           std::string const& part) {
  int steps = static_cast<int>(first);
  auto loader = line::loader(8, 8);
  Trainer trainer{Early(&steps), optim::SGD{.learning_rate = 0.01}, parallel::SingleDevice{.threads = 1}};
  Recorder recorder;
  trainer.fit(loader, {.epochs = 4,
                       .max_steps = last,
                       .checkpoints = {.folder = folder, .resume = train::newest_checkpoint(folder)},
                       .loss_parts = {part},
                       .observers = {&recorder}});
  return recorder.steps;
}
}  // namespace

TEST_CASE("a part that only early steps have is NaN in later ones, also in a resumed run") {
  lockstep_test::TemporaryFolder const folder;
  auto const whole = early_steps(folder / "whole", 0, 4, "early");
  auto steps = early_steps(folder / "parts", 0, 2, "early");
  for (Index const first : {2, 3}) {  // the second pause comes after a run without the part
    auto const rest = early_steps(folder / "parts", first, first + 1, "early");
    steps.insert(steps.end(), rest.begin(), rest.end());
  }
  REQUIRE(whole.size() == 4);
  REQUIRE(steps.size() == 4);
  for (std::size_t i = 0; i < steps.size(); ++i) {
    CHECK(std::isnan(whole[i].loss_parts[0].second) == (i >= 2));
    CHECK(std::isnan(steps[i].loss_parts[0].second) == (i >= 2));
    if (i < 2) CHECK(steps[i].loss_parts[0].second == whole[i].loss_parts[0].second);
  }
  early_steps(folder / "again", 0, 2, "early");
  CHECK_THROWS_WITH_AS(early_steps(folder / "again", 2, 3, "erly"),
                       doctest::Contains("loss_parts: the model's loss of a step has no part \"erly\""), ConfigError);
}

TEST_CASE("a part that only early steps have is NaN in later ones of one's own loop, also after load_state") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "state.safetensors";
  auto loader = line::loader(8, 8);
  auto const make_steps = [&](int first, int count, bool loads, bool saves) {
    int steps = first;
    Trainer trainer{Early(&steps), optim::SGD{.learning_rate = 0.01}, parallel::SingleDevice{.threads = 1}};
    if (loads) train::load_state(trainer, path);
    loader.start(trainer.split(), 0, 0, count);
    double part = 0;
    for (int i = 0; i < count; ++i) {
      trainer.step(loader.next());
      part = trainer.loss_parts({"early"})[0].second;
    }
    if (saves) train::save_state(trainer, path);
    return part;
  };
  CHECK(std::isnan(make_steps(0, 3, false, false)));
  CHECK(make_steps(0, 2, false, true) > 0);
  CHECK(std::isnan(make_steps(2, 1, true, false)));
  CHECK_THROWS_AS(make_steps(2, 1, false, false), ConfigError);
}

TEST_CASE("a dry run looks up the parts, on all ranks") {
  std::vector<std::string> errors(2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    auto loader = line::loader(8, 2);
    Trainer trainer{Model{}, optim::SGD{}, parallel::DistributedDataParallel{comm::connect(world)}};
    trainer.fit(loader, {.loss_parts = {"error"}, .dry_run = true});
    try {
      trainer.fit(loader, {.loss_parts = {"error", "kl"}, .dry_run = true});
    } catch (ConfigError const& error) {
      errors[static_cast<std::size_t>(world.rank)] = error.what();
    }
    CHECK(trainer.state().done.steps == 0);
    return 0;
  });
  for (auto const& error : errors)
    CHECK(error.starts_with("loss_parts: the model's loss of a step has no part \"kl\""));
}
