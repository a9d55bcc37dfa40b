// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/nn/module/gradient_check.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/evaluation.hpp>

#include "../examples/activity_classification/data.hpp"
#include "../examples/activity_classification/model.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "examples/story_commands.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using namespace lockstep_test;
using activity_classification::ActivityClassifier, activity_classification::Mode;
using data::HarSample;
namespace fs = std::filesystem;

namespace {

/// Waves whose frequency determines their class.
std::vector<HarSample> windows(int count, int length) {
  std::vector<HarSample> all;
  for (int i = 0; i < count; ++i) {
    HarSample window{std::vector<std::array<float, 9>>(static_cast<std::size_t>(length)), i % 6};
    for (int t = 0; t < length; ++t)
      for (int signal = 0; signal < 9; ++signal)
        window.signals[static_cast<std::size_t>(t)][static_cast<std::size_t>(signal)] =
            static_cast<float>(std::sin(0.4 * (1 + window.label) * t + signal + i));
    all.push_back(std::move(window));
  }
  return all;
}

using Flags = std::vector<std::string>;

Flags both(Flags a, Flags const& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// A folder with the layout of the data set's archive.
struct Files : TemporaryFolder {
  explicit Files(Index training = 72, Index test = 24) {
    activity_classification::SyntheticMotion const motion(1);
    activity_classification::write_part(data(), "train", motion, 0, training);
    if (test > 0) activity_classification::write_part(data(), "test", motion, training, test);
  }
  [[nodiscard]] std::string data() const { return *this / "har"; }
  [[nodiscard]] std::string signals(std::string const& name) const {
    return data() + "/train/Inertial Signals/" + name + "_train.txt";
  }
};

json::Value run_json(std::string const& folder) { return json::parse(read_file(folder + "/run.json"), folder); }

json::Value trained(std::string const& folder, Flags const& more) {
  auto const outcome =
      run_example("activity_classification", both({"--threads", "1", "--lr", "0.01", "--save-dir", folder}, more));
  CAPTURE(outcome.out);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return run_json(folder);
}

/// Flags of networks that compile and train quickly without optimization.
Flags const conv{"--width", "8"}, flatten{"--mode", "flatten", "--hidden", "16"},
    transformer{"--mode",      "transformer", "--d-model",      "8", "--num-layers", "1",
                "--num-heads", "2",           "--feed-forward", "8"};

}  // namespace

TEST_CASE("each mode has the documented number of parameters") {
  auto const parameters = [](Mode mode) {
    ActivityClassifier model({.mode = mode});
    return nn::ParameterLayout::of(model).parameters();
  };
  CHECK(parameters(Mode::flatten) == 328'838);
  CHECK(parameters(Mode::conv) == 127'174);
  CHECK(parameters(Mode::transformer) == 76'166);
  ActivityClassifier model;
  CHECK(nn::ParameterLayout::of(model).entries()[0].name == "first.convolution.weight");
}

TEST_CASE("gradients of each mode are exact, with BatchNorm in training mode, label smoothing and class weights") {
  for (auto const mode : {Mode::flatten, Mode::conv, Mode::transformer}) {
    ActivityClassifier model({.mode = mode,
                              .length = 12,
                              .channels = 3,
                              .hidden = 5,
                              .width = 4,
                              .layers = 1,
                              .heads = 2,
                              .feed_forward = 5,
                              .dropout = 0},
                             {.label_smoothing = 0.1, .class_weights = {1, 2, 0.5f, 1, 1, 3}});
    auto const layout = nn::ParameterLayout::of(model);
    std::vector<double> values(static_cast<std::size_t>(layout.size()));
    nn::initialize(layout, 3, values.data());
    auto batches = in_order(windows(5, 12), 5, data::PadCollate{});
    batches.start({0, 1, 1}, 0, 0, 1);
    auto const held = batches.next();
    auto const result = nn::check_gradients(model, layout, values, held.batches()[0]);
    CAPTURE(static_cast<int>(mode));
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("a few windows are overfitted on one device, two devices and two ranks, with bit-identical results") {
  auto const evaluate = [](auto& trainer) {  // with rank zero's running statistics, which all ranks have
    auto held = in_order(windows(12, 32), 12, data::PadCollate{});
    auto const report = trainer.evaluate(train::Evaluation{held, train::Accuracy{&HarSample::label}});
    return std::pair(report.loss, report.metrics.at(0).second);
  };
  auto const known = [](auto const& loss_and_accuracy) { return loss_and_accuracy.second == 1; };
  check_learned_by_heart(ActivityClassifier{{.channels = 8}}, windows(12, 32), data::PadCollate{}, 60, evaluate, known);
}

TEST_CASE("dp and ddp learn synthetic motion in each mode with equal bits, and write it once") {
  TemporaryFolder const folder;
  ::setenv("XDG_CACHE_HOME", (folder / "cache").c_str(), 1);
  Flags const common{"--samples", "240", "--batch-size", "8", "--epochs", "6"};
  auto const dp = trained(folder / "dp", both(both(conv, common), {"--multi-gpu", "dp", "--devices", "2"})),
             ddp = trained(folder / "ddp", both(both(conv, common), {"--nproc", "2"}));
  CHECK(dp.at("parameters_sha256") == ddp.at("parameters_sha256"));
  CHECK(dp.at("final").at("eval_loss") == ddp.at("final").at("eval_loss"));
  CHECK(dp.at("final").at("eval_accuracy").number() >= 0.6);
  CHECK(dp.at("final").at("eval_f1").number() >= 0.6);
  CHECK(dp.at("final").at("eval_samples").integer() == 60);
  CHECK(ddp.at("settings").at("samples").integer() == 240);
  CHECK(ddp.at("settings").at("mode").string() == "conv");
  CHECK(read_file(folder / "dp/data/train/y_train.txt") == read_file(folder / "ddp/data/train/y_train.txt"));
  CHECK(read_file(folder / "dp/data/synthetic.txt") == "240 windows of synthetic motion\n");
  CHECK_FALSE(fs::exists(folder / "cache"));
  for (auto const& mode : {flatten, transformer}) {
    auto const flags = both(mode, {"--data", folder / "dp/data", "--batch-size", "8", "--max-steps", "4"});
    auto const name = folder / mode[1];
    CHECK(trained(name + "-dp", both(flags, {"--devices", "2"})).at("parameters_sha256") ==
          trained(name + "-ddp", both(flags, {"--nproc", "2"})).at("parameters_sha256"));
  }
}

TEST_CASE("one in twenty labels of the synthetic data is wrong") {
  activity_classification::SyntheticMotion const motion(1);
  for (std::uint64_t i = 0; i < 60; ++i) {
    auto const window = motion(i);
    double strength = 0;
    for (auto const& step : window.signals) strength += std::abs(static_cast<double>(step[0])) / 128;
    bool const moves = strength > 0.1, walks = window.label < 3;
    if (i % 20 != 19) CHECK(moves == walks);
  }
}

TEST_CASE("a folder is evaluated on its test part, on --eval-data, or on held-out subjects") {
  Files const files(60, 0);
  Flags const flags = both(conv, {"--data", files.data(), "--epochs", "2"});
  auto const held_out = trained(files / "a", flags);
  CHECK(held_out.at("final").at("eval_samples").integer() == 6);  // 2 of 20 subjects, 3 windows each
  Files const other(20, 40);
  CHECK(trained(files / "b", both(flags, {"--eval-data", other.data()})).at("final").at("eval_samples").integer() ==
        40);
  CHECK(trained(files / "c", both(conv, {"--data", other.data(), "--epochs", "1"}))
            .at("final")
            .at("eval_samples")
            .integer() == 40);
}

TEST_CASE("a run resumed in the middle of an epoch ends as an uninterrupted one") {
  Files const files;
  Flags const common = both(conv, {"--data", files.data(), "--batch-size", "4", "--epochs", "2", "--eval-every", "7"});
  for (auto const& policy : {Flags{"--parallel", "single"}, {"--parallel", "dp", "--devices", "2"}, {"--nproc", "2"}}) {
    CAPTURE(policy[1]);
    auto const name = files / (policy[0] + policy[1]);
    auto const whole = trained(name, both(both(common, policy), {"--checkpoint-every", "5"}));
    CHECK(whole.at("steps").integer() % 5 != 0);
    auto const resumed =
        trained(name + "-resumed", both(both(common, policy), {"--resume", name + "/checkpoints/step_5.safetensors"}));
    CHECK(resumed.at("resumed_at").at(std::size_t{0}).integer() == 5);
    CHECK(resumed.at("parameters_sha256") == whole.at("parameters_sha256"));
    CHECK(resumed.at("final") == whole.at("final"));
  }
}

TEST_CASE("metrics: the best parameters by F1, balanced classes and a report for each class") {
  Files const files;
  auto const outcome =
      run_example("activity_classification",
                  both(conv, {"--data", files.data(), "--epochs", "2", "--best-by", "f1", "--label-smoothing", "0.1",
                              "--class-weights", "balanced", "--save-dir", files / "run", "--threads", "1"}));
  CAPTURE(outcome.err);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "class  name"));  // counts and weights
  CHECK(contains(outcome.out, "upstairs"));
  CHECK(contains(outcome.out, "confusion matrix: rows are labels"));
  CHECK(fs::exists(files / "run/checkpoints/best.safetensors"));
  auto const again = run_example(
      "activity_classification",
      both(conv, {"--data", files.data(), "--evaluate", "--init-from", files / "run/checkpoints/best.safetensors"}));
  CAPTURE(again.err);
  CHECK(again.exit_code == 0);
  CHECK(contains(again.out, "macro mean"));
}

TEST_CASE("--predictions writes file and line, label and prediction of each window, equal for one and two ranks") {
  Files const files;
  Flags const common = both(conv, {"--data", files.data(), "--epochs", "1", "--global-batch-size", "8"});
  auto const run = trained(files / "run", both(common, {"--predictions", files / "table.csv"}));
  auto const saved = files / "run/checkpoints/step_9.safetensors";
  auto const again = run_example("activity_classification", {"--data", files.data(), "--evaluate", "--init-from", saved,
                                                             "--nproc", "2", "--predictions", files / "again.csv"});
  CAPTURE(again.err);
  CHECK(again.exit_code == 0);  // the network's sizes are those of the saved run
  auto const table = read_file(files / "table.csv");
  CHECK(table == read_file(files / "again.csv"));
  std::istringstream lines(table);
  std::string line;
  std::getline(lines, line);
  CHECK(line == "window,label,predicted");
  int count = 0, right = 0;
  for (; std::getline(lines, line); ++count) {
    auto const label = line.find(','), predicted = line.rfind(',');
    CHECK(line.substr(0, label) == files.data() + "/test/y_test.txt:" + std::to_string(count + 1));
    right += line.substr(label, predicted - label) == line.substr(predicted);
  }
  CHECK(count == 24);
  CHECK(right == doctest::Approx(24 * run.at("final").at("eval_accuracy").number()));
}

TEST_CASE("invalid data and flags are refused in one sentence with exit code 2, and nothing is written") {
  Files const good;
  auto const refused = [&](Flags const& flags, std::string const& words) {
    auto const outcome = run_example("activity_classification", both(flags, {"--save-dir", good / "saved"}));
    CAPTURE(words);
    CAPTURE(outcome.err);
    CHECK(outcome.exit_code == 2);
    CHECK(outcome.lines_of_err() == 1);
    CHECK(contains(outcome.err, words));
    CHECK(outcome.out.empty());
    CHECK_FALSE(fs::exists(good / "saved"));
  };
  fs::create_directory(good / "empty");
  refused({"--data", good / "nowhere"}, "nowhere/train/y_train.txt: does not exist; a folder of data is");
  refused({"--data", good / "empty"}, "empty/train/y_train.txt: does not exist; a folder of data is");
  refused({"--data", good.data(), "--eval-data", good / "empty"},
          "empty/test/y_test.txt: does not exist; a folder of data is");
  for (std::string const file :
       {"/train/y_train.txt", "/test/y_test.txt", "/test/Inertial Signals/body_acc_x_test.txt"})
    refused({"--data", good.data(), "--predictions", good.data() + file}, "is a file that the run reads");
  refused({"--eval-data", good.data()}, "--eval-data " + good.data() + " without --data");
  refused({"--data", good.data(), "--hidden", "8"}, "--hidden with --mode conv: this network has no such size");
  refused({"--data", good.data(), "--mode", "flatten", "--d-model", "8"}, "--d-model with --mode flatten");
  refused({"--data", good.data(), "--mode", "mlp"}, "must be one of flatten, conv, transformer");
  refused({"--data", good.data(), "--mode", "transformer", "--d-model", "10", "--num-heads", "4"}, "--num-heads 4");

  auto const with = [&](std::string const& path, std::size_t line, std::string const& text, std::string const& words,
                        Flags const& more = {}) {
    auto const before = read_file(path);
    std::istringstream lines(before);
    std::string changed;
    std::size_t number = 0;
    for (std::string each; std::getline(lines, each);) changed += (++number == line ? text : each + "\n");
    write_file(path, changed);
    refused(both({"--data", good.data()}, more), words);
    write_file(path, before);
  };
  auto const label = good.data() + "/train/y_train.txt";
  with(label, 5, "7\n", "y_train.txt:5: a class from 1 to 6 is expected, found \"7\"");
  with(label, 5, "", "body_acc_x_train.txt: has 72 rows and");
  auto const signal = good.signals("total_acc_y");
  std::string row;
  for (int t = 0; t < 127; ++t) row += "0.5 ";
  with(signal, 72, row + "\n", "total_acc_y_train.txt:72: has 127 values; a row of this file must have 128");
  with(signal, 70, row + "nan\n", "total_acc_y_train.txt:70: value 128: a finite number is expected, found \"nan\"",
       {"--nproc", "2"});
  with(signal, 72, "", "total_acc_y_train.txt: has 71 rows and");
  with(good.data() + "/test/y_test.txt", 1, "x\n", "y_test.txt:1: value 1: a finite number is expected");
}

TEST_CASE("--on-failure skip skips unreadable windows and lists those of all ranks") {
  Files const files;
  auto text = read_file(files.signals("body_acc_z"));
  std::size_t begin = 0;
  for (int row = 0; row < 4; ++row, begin = text.find('\n', begin) + 1) text[text.find('.', begin)] = 'x';
  write_file(files.signals("body_acc_z"), text);
  auto const outcome =
      run_example("activity_classification",
                  both(conv, {"--data", files.data(), "--epochs", "2", "--on-failure", "skip", "--nproc", "2"}));
  CAPTURE(outcome.err);
  CAPTURE(outcome.out);
  CHECK(outcome.exit_code == 0);
  CHECK(contains(outcome.out, "note: 4 samples were skipped, 8 times in all:"));
  for (int row = 1; row <= 4; ++row)
    CHECK(contains(outcome.out,
                   "body_acc_z_train.txt:" + std::to_string(row) + ": value 1: a finite number is expected"));
}

TEST_CASE("every command in docs/explanation/stories/activity-classification.md runs") {
  Files const files;
  auto const complete = [&](Flags& flags, std::string const& command) {
    flags = both(flags, {"--max-steps", contains(command, "--resume") ? "4" : "2", "--threads", "1"});
    if (!contains(command, "--data")) flags = both(flags, {"--data", files.data()});
  };
  check_story_commands("activity-classification", "activity_classification",
                       {{"runs/har", files / "run"}, {"data/har", files.data()}}, complete, 15);
}
