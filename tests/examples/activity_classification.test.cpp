// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/train/accuracy.hpp>
#include <lockstep/train/evaluation.hpp>

#include "../examples/activity_classification/model.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using activity_classification::ActivityClassifier;
using data::HarSample;

namespace {

/// Waves whose pace tells their class.
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

json::Value trained(std::string const& folder, Flags more) {
  Flags flags{"--width", "8", "--epochs", "6", "--threads", "1", "--lr", "0.01", "--save-dir", folder};
  flags.insert(flags.end(), more.begin(), more.end());
  auto const outcome = lockstep_test::run_example("activity_classification", flags);
  CAPTURE(outcome.err);
  REQUIRE(outcome.exit_code == 0);
  return json::parse(lockstep_test::read_file(folder + "/run.json"), folder);
}

}  // namespace

TEST_CASE("the size of the model") {
  ActivityClassifier model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.parameters() == 127'174);
  CHECK(layout.entries()[0].name == "first.convolution.weight");
}

TEST_CASE("gradients, with BatchNorm in training mode") {
  ActivityClassifier model({.width = 3});
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 3, values.data());
  auto batches = lockstep_test::in_order(windows(5, 12), 5, data::PadCollate{});
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  auto const result = nn::check_gradients(model, layout, values, held.batches()[0]);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("a few windows are learned by heart on one device, on two, and by two ranks, which agree bit for bit") {
  auto const evaluate = [](auto& trainer) {  // with rank 0's running statistics, which are everyone's
    auto held = lockstep_test::in_order(windows(12, 32), 12, data::PadCollate{});
    auto const report = trainer.evaluate(train::Evaluation{held, train::Accuracy{&HarSample::label}});
    return std::pair(report.loss, report.metrics.at(0).second);
  };
  lockstep_test::check_learned_by_heart(ActivityClassifier{{.width = 8}}, windows(12, 32), data::PadCollate{}, 60,
                                        evaluate,
                                        [](auto const& loss_and_accuracy) { return loss_and_accuracy.second == 1; });
}

TEST_CASE("side by side, two devices and two ranks learn generated motion, to the same bits") {
  lockstep_test::TemporaryFolder const folder;
  Flags const generated{"--samples", "240", "--batch-size", "8"};
  auto const with = [&](Flags flags) { return flags.insert(flags.end(), generated.begin(), generated.end()), flags; };
  auto const dp = trained(folder / "dp", with({"--parallel", "dp", "--devices", "2"})),
             ddp = trained(folder / "ddp", with({"--nproc", "2"}));
  CHECK(dp.at("parameters_sha256") == ddp.at("parameters_sha256"));
  CHECK(dp.at("final").at("eval_loss") == ddp.at("final").at("eval_loss"));
  CHECK(dp.at("final").at("eval_accuracy").number() >= 0.9);
  CHECK(dp.at("final").at("eval_samples").integer() == 24);
  CHECK(ddp.at("settings").at("lr").number() == 0.01);
  CHECK(ddp.at("settings").at("samples").integer() == 240);
  CHECK(ddp.at("settings").at("epochs").integer() == 6);
  CHECK(ddp.at("settings").at("weight-decay").number() == 0.01);
  CHECK(dp.at("command").array().back().string() == "8");
}

TEST_CASE("a folder as the data set's archive has it is read, and evaluated on its own test part or on other people") {
  lockstep_test::TemporaryFolder const folder;
  auto const write = [&](std::string const& part, int count) {
    auto const base = folder / ("har/" + part);
    std::filesystem::create_directories(base + "/Inertial Signals");
    auto const all = windows(count, 128);
    std::string labels, people;
    for (int i = 0; i < count; ++i) {
      labels += std::to_string(all[static_cast<std::size_t>(i)].label + 1) + "\n";
      people += std::to_string(i / 6 + 1) + "\n";
    }
    lockstep_test::write_file(base + "/y_" + part + ".txt", labels);
    lockstep_test::write_file(base + "/subject_" + part + ".txt", people);
    std::size_t signal = 0;
    for (std::string const kind : {"body_acc_", "total_acc_", "body_gyro_"})
      for (std::string const axis : {"x", "y", "z"}) {
        std::string text;
        for (auto const& window : all) {
          for (auto const& step : window.signals) text += " " + std::to_string(step[signal]);
          text += "\n";
        }
        lockstep_test::write_file(base + "/Inertial Signals/" + kind + axis + "_" + part + ".txt", text);
        ++signal;
      }
  };
  write("train", 60);
  auto const held_out = trained(folder / "a", {"--data", folder / "har"});
  CHECK(held_out.at("final").at("eval_samples").integer() % 6 == 0);  // of whole people
  write("test", 12);
  auto const own = trained(folder / "b", {"--data", folder / "har"});
  CHECK(own.at("final").at("eval_samples").integer() == 12);
  auto const none = lockstep_test::run_example("activity_classification", {"--data", folder / "nowhere"});
  CHECK(none.exit_code == 2);
  CHECK(lockstep_test::contains(none.err, "nowhere/train/y_train.txt"));
}
