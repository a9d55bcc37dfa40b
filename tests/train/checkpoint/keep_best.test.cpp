// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/checkpoint/keep_best.hpp>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "temporary_folder.hpp"
#include "train/line.hpp"

using namespace lockstep;

TEST_CASE("the file has the parameters of the best evaluation, whatever training did later") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "of/two/best.safetensors";
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  // Steps that overshoot more and more: the first evaluation is the best.
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
  struct First : train::Observer {
    Trainer<line::Model, optim::SGD, parallel::SingleDevice> const& trainer;
    std::vector<float> slopes;
    explicit First(decltype(trainer) t) : trainer(t) {}
    void evaluation(train::EvaluationReport const&) override { slopes.push_back(trainer.values()[0]); }
  } recorder(trainer);
  train::KeepBest best(trainer, path, {{"unit", "metres"}});
  auto const record = trainer.fit(loader, train::Evaluation{again}, {.epochs = 3, .observers = {&recorder, &best}});
  REQUIRE(record.evaluations.size() == 3);
  CHECK(record.evaluations[0].best);
  CHECK_FALSE(record.evaluations[2].best);
  REQUIRE(recorder.slopes[0] != recorder.slopes[2]);
  CHECK(train::load_text(path, "unit") == "metres");
  Trainer later{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  later.load(path);
  CHECK(later.values()[0] == recorder.slopes[0]);
  CHECK_THROWS_WITH_AS(
      trainer.fit(loader, train::Evaluation{again}, {.epochs = 1, .observers = {&best}}),
      doctest::Contains("best.safetensors belongs to an earlier fit, and would be overwritten; give each "
                        "fit a KeepBest with its own path"),
      ConfigError);
}

namespace {
/// A diverging value, larger and larger, by which the last evaluation is the best.
struct Distance {
  double sum = 0;
  [[nodiscard]] char const* name() const { return "distance"; }
  void add(auto const& prediction, auto const& batch) {
    for (Index i = 0; i < batch.rows(); ++i) sum += std::abs(double{prediction.value(i, 1)});
  }
  [[nodiscard]] std::span<double> totals() { return {&sum, 1}; }
  [[nodiscard]] double value() const { return sum; }
};
}  // namespace

namespace {
/// An equal number, of which less is better.
struct DistanceError : Distance {
  static constexpr bool higher_is_better = false;
  [[nodiscard]] char const* name() const { return "error"; }
};
}  // namespace

TEST_CASE("a relative path counts from the working directory at the start of the fit") {
  lockstep_test::TemporaryFolder const folder;
  struct Leaving : train::Observer {
    void step(train::StepReport const&) override { std::filesystem::current_path("/"); }
  } leaving;
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, "kept/best.safetensors");
  auto const here = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  CHECK_NOTHROW(trainer.fit(loader, train::Evaluation{again}, {.epochs = 1, .observers = {&leaving, &best}}));
  std::filesystem::current_path(here);
  CHECK(std::filesystem::exists(folder / "kept/best.safetensors"));
}

TEST_CASE("if a metric is better when lower, its smallest value is kept, and others end the run") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "best.safetensors";
  auto const judged_by = [&](std::string const& name) {
    auto loader = line::loader(8, 4), again = line::loader(8, 4);
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
    train::KeepBest best(trainer, path);
    auto const record = trainer.fit(loader, train::Evaluation{again, Distance{}, DistanceError{}},
                                    {.epochs = 9, .patience = 2, .best_by = name, .observers = {&best}});
    CHECK(record.evaluations[0].metrics[0].second < record.evaluations[1].metrics[0].second);
    return record.evaluations.size();
  };
  CHECK(judged_by("error") == 3);
  auto const of_first = lockstep_test::read_file(path);
  CHECK(judged_by("loss") == 3);
  CHECK(lockstep_test::read_file(path) == of_first);
  CHECK(judged_by("distance") == 9);
  CHECK(lockstep_test::read_file(path) != of_first);
}

TEST_CASE("a resumed run with another judge keeps its own best, and renames the other's") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "best.safetensors", aside = folder / "best_of_step_6.safetensors";
  struct Part {
    std::vector<bool> best;
    std::string renamed_file;
  };
  auto const train_to = [&](Index epochs, std::string const& best_by) {
    auto loader = line::loader(8, 4), again = line::loader(8, 4);
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
    train::KeepBest best(trainer, path);
    FitOptions options{.epochs = epochs, .best_by = best_by};
    options.checkpoints = {.folder = folder / "saved", .resume = train::newest_checkpoint(folder / "saved")};
    options.observers = {&best};
    Part part;
    for (auto const& each : trainer.fit(loader, train::Evaluation{again, Distance{}}, options).evaluations)
      part.best.push_back(each.best);
    part.renamed_file = best.renamed_file();
    return part;
  };
  CHECK(train_to(3, "distance").best == std::vector{true, true, true});
  auto const of_distance = lockstep_test::read_file(path);
  auto const by_loss = train_to(4, "loss");
  CHECK(by_loss.best == std::vector{true, false, false, false});
  CHECK(by_loss.renamed_file == aside);
  CHECK(lockstep_test::read_file(aside) == of_distance);
  CHECK_FALSE(std::filesystem::exists(path));  // the first evaluation's parameters are lost
  CHECK(train_to(5, "distance").best == std::vector(5, true));
  auto const kept = lockstep_test::read_file(path);
  CHECK(train_to(6, "distance").renamed_file.empty());
  CHECK(lockstep_test::read_file(path) != kept);
  // A later step's file stays in its place until this run has a better one.
  std::filesystem::remove(folder / "saved/step_12.safetensors");
  CHECK(train_to(6, "loss").renamed_file.empty());
}

TEST_CASE("a name without a dot, in a folder with one, is renamed as well") {
  lockstep_test::TemporaryFolder const folder;
  for (auto const* name : {"v1.0/best", "v1.0/best.safetensors", "best"}) {
    Trainer trainer{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
    train::KeepBest earlier(trainer, folder / name), later(trainer, folder / name);
    earlier.start({.steps = 10, .epochs = 1});
    earlier.evaluation({.step = 3, .best = true});
    later.start({.steps = 10, .epochs = 1, .resumed = 5, .best = 2});
    CHECK(std::filesystem::exists(later.renamed_file()));
  }
}

TEST_CASE("a fit without evaluations is refused before its first step, also in a dry run") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(8, 4), again = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, folder / "of/best.safetensors");
  char const* const sentence =
      "fit: an observer, such as train::KeepBest, would do nothing without evaluations, and there are none; pass one, "
      "let evaluate_every_epochs be at least 1, or leave the observer out";
  CHECK_THROWS_WITH_AS(trainer.fit(loader, {.observers = {&best}}), sentence, ConfigError);
  CHECK_THROWS_WITH_AS(trainer.fit(loader, {.observers = {&best}, .dry_run = true}), sentence, ConfigError);
  CHECK_THROWS_WITH_AS(
      trainer.fit(loader, train::Evaluation{again}, {.evaluate_every_epochs = 0, .observers = {&best}}), sentence,
      ConfigError);
  CHECK(trainer.values()[0] == 0);
  CHECK_FALSE(std::filesystem::exists(folder / "of"));
}

TEST_CASE("a null observer is refused before the first step") {
  auto loader = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 3}, parallel::SingleDevice{.threads = 1}};
  CHECK_THROWS_WITH_AS(
      trainer.fit(loader, {.observers = {nullptr}}),
      "fit: options.observers holds a null pointer; leave out an observer that this rank does not have", ConfigError);
  CHECK(trainer.values()[0] == 0);
}

TEST_CASE("with a stream, each new best prints one line with value, step and path") {
  lockstep_test::TemporaryFolder const folder;
  auto const path = folder / "best.safetensors", printed = folder / "said.txt";
  auto const lines_of = [&](std::string const& best_by, std::vector<train::EvaluationReport> const& reports) {
    std::FILE* const out = std::fopen(printed.c_str(), "w");
    Trainer trainer{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
    train::KeepBest best(trainer, path, {}, out);
    best.start({.steps = 30, .epochs = 1, .best_by = best_by});
    for (auto const& report : reports) best.evaluation(report);
    std::fclose(out);
    return lockstep_test::read_file(printed);
  };
  train::EvaluationReport const first{
      .step = 10, .loss = 0.5, .metrics = {{"accuracy", 0.9}, {"f1", 0.25}}, .best = true},
      second{.step = 20, .loss = 0.4, .metrics = {{"accuracy", 0.9}, {"f1", 0.2}}, .best = false},
      third{.step = 30, .loss = 0.3, .metrics = {{"accuracy", 0.9}, {"f1", 0.81234}}, .best = true};
  CHECK(lines_of("f1", {first, second, third}) ==
        "new best f1 0.2500 at step 10, saved to " + path + "\nnew best f1 0.8123 at step 30, saved to " + path + "\n");
  CHECK(lines_of("loss", {third}) == "new best loss 0.3000 at step 30, saved to " + path + "\n");
}

namespace {
/// Not a number, or 1.
struct PerhapsDefined : Distance {
  bool defined;
  explicit PerhapsDefined(bool is_defined) : defined(is_defined) {}
  [[nodiscard]] char const* name() const { return "undefined"; }
  [[nodiscard]] double value() const { return defined ? 1 : std::nan(""); }
};
}  // namespace

TEST_CASE("with a stream, a line at the end says that no evaluation had a number to judge it by") {
  lockstep_test::TemporaryFolder const folder;
  for (bool const defined : {false, true}) {
    auto loader = line::loader(8, 4), again = line::loader(8, 4);
    Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0.2}, parallel::SingleDevice{.threads = 1}};
    auto const path = folder / (std::to_string(defined) + ".safetensors");
    std::FILE* out = std::tmpfile();
    train::KeepBest best(trainer, path, {}, out);
    trainer.fit(loader, train::Evaluation{again, PerhapsDefined(defined)},
                {.epochs = 2, .best_by = "undefined", .observers = {&best}});
    std::rewind(out);
    char text[4096] = {};
    CHECK(std::fread(text, 1, sizeof text - 1, out) > 0);
    std::fclose(out);
    auto const none =
        "no evaluation is the best, because none has a number for undefined: " + path + " was not written\n";
    CHECK((std::string(text) == none) != defined);
    CHECK(std::filesystem::exists(path) == defined);
  }
}

TEST_CASE("metadata that cannot be saved is refused before the first step") {
  lockstep_test::TemporaryFolder const folder;
  auto loader = line::loader(8, 4), held_out = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, folder / "best.safetensors", {{"classes", "a"}, {"classes", "b"}});
  CHECK_THROWS_WITH_AS(trainer.fit(loader, train::Evaluation{held_out}, {.epochs = 1, .observers = {&best}}),
                       doctest::Contains("the metadata \"classes\" is given twice"), ConfigError);
  CHECK(trainer.values()[0] == 0);
  CHECK(folder.entries() == 0);
}
