// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include <lockstep/core/json.hpp>
#include <lockstep/data/pad_collate.hpp>
#include <lockstep/nn/gradient_check.hpp>
#include <lockstep/train/accuracy.hpp>
#include <lockstep/train/evaluation.hpp>
#include <lockstep/train/predictor.hpp>

#include "../examples/video_classification/model.hpp"
#include "examples/learned_by_heart.hpp"
#include "examples/program.hpp"
#include "temporary_folder.hpp"

using namespace lockstep;
using video_classification::Clip;
using video_classification::VideoClassifier;

namespace {
video_classification::Sizes const small{
    .frames = 3, .height = 12, .width = 10, .channels = {4, 6, 8}, .class_weights = {1, 3}};

// A bright square that moves to the right in clips of class 1 and to the left in those of class 0.
std::vector<Clip> clips(int count) {
  std::vector<Clip> all;
  for (int i = 0; i < count; ++i) {
    Clip clip{std::vector<std::uint8_t>(static_cast<std::size_t>(small.frames * small.height * small.width)),
              i / 2 % 2};
    for (Index f = 0; f < small.frames; ++f)
      for (Index y = 0; y < small.height; ++y)
        for (Index x = 0; x < small.width; ++x) {
          Index const left = clip.label == 1 ? 2 * f + i % 3 : 6 - 2 * f - i % 3;
          bool const inside = x >= left && x < left + 3 && y > i % 5 && y < i % 5 + 5;
          clip.pixels[static_cast<std::size_t>((f * small.height + y) * small.width + x)] =
              static_cast<std::uint8_t>((inside ? 200 : 40) + (7 * i + 13 * x + 5 * y + 3 * f) % 30);
        }
    all.push_back(std::move(clip));
  }
  return all;
}
auto loader(int count, Index batch_size) {
  return lockstep_test::in_order(clips(count), batch_size, data::PadCollate{});
}
}  // namespace

TEST_CASE("the size of the model") {
  VideoClassifier model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.parameters() == 2'947'476);
  CHECK(layout.entries()[0].name == "stages.0.convolution.weight");
  CHECK(layout.buffers()[0].name == "stages.0.norm.running_mean");
}

TEST_CASE("gradients, with BatchNorm in training mode") {
  VideoClassifier model(small);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()));
  nn::initialize(layout, 3, values.data());
  auto batches = loader(5, 5);
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  auto const result = nn::check_gradients(model, layout, values, held.batches()[0]);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE("a few clips are learned by heart on one device, on two, and by two ranks, which agree bit for bit") {
  // After 30 steps the mean loss is far below ln 2 = 0.69, that of a coin: 0.1 leaves no more than one clip in doubt.
  auto const evaluate = [](auto& trainer) {  // with rank 0's running statistics, which are everyone's
    auto held = loader(16, 16);
    auto const report = trainer.evaluate(train::Evaluation{held, train::Accuracy{&Clip::label}});
    return std::pair(report.loss, report.metrics.at(0).second);
  };
  lockstep_test::check_learned_by_heart(VideoClassifier{small}, clips(16), data::PadCollate{}, 30, evaluate,
                                        [](auto const& loss_and_accuracy) { return loss_and_accuracy.second == 1; });
}

TEST_CASE("what was saved predicts as the trainer evaluates, running statistics included") {
  lockstep_test::TemporaryFolder const folder;
  Trainer trainer{VideoClassifier{small}, optim::AdamW{.learning_rate = 1e-2}, parallel::SingleDevice{.threads = 1}};
  auto batches = loader(16, 16);
  trainer.fit(batches, {}, {.epochs = 3});
  train::save_parameters(folder / "model", trainer.layout(), trainer.values(), {}, trainer.buffers());
  train::Predictor loaded(VideoClassifier{small}, folder / "model"),
      handed_over(VideoClassifier{small}, trainer.values(), trainer.buffers());
  batches.start({0, 1, 1}, 0, 0, 1);
  auto const held = batches.next();
  auto const a = loaded.predict(held.batches()[0]), b = handed_over.predict(held.batches()[0]);
  CHECK(std::ranges::equal(a.value.span(), b.value.span()));
  std::vector<float> const untouched(trainer.buffers().size(), 0.0f);
  train::Predictor other(VideoClassifier{small}, trainer.values(), untouched);
  CHECK_FALSE(std::ranges::equal(a.value.span(), other.predict(held.batches()[0]).value.span()));
}

TEST_CASE("the program trains on two ranks as on two devices") {
  lockstep_test::TemporaryFolder const folder;
  auto const trained = [&](std::string const& name, std::vector<std::string> flags) {
    flags.insert(flags.end(), {"--frames", "5", "--height", "24", "--width", "20", "--samples", "40", "--epochs", "2",
                               "--batch-size", "4", "--threads", "1", "--save-dir", folder / name});
    auto const outcome = lockstep_test::run_example("video_classification", flags);
    CAPTURE(outcome.err);
    REQUIRE(outcome.exit_code == 0);
    return json::parse(lockstep_test::read_file(folder / name + "/run.json"), name);
  };
  auto const dp = trained("dp", {"--parallel", "dp", "--devices", "2"}), ddp = trained("ddp", {"--nproc", "2"});
  CHECK(dp.at("parameters_sha256") == ddp.at("parameters_sha256"));
  CHECK(dp.at("final").at("eval_loss") == ddp.at("final").at("eval_loss"));
  CHECK(dp.at("final").at("eval_samples").integer() == 4);
  auto const sync_dp = trained("sync_dp", {"--parallel", "dp", "--devices", "2", "--sync-batch-norm"}),
             sync_ddp = trained("sync_ddp", {"--nproc", "2", "--sync-batch-norm"});
  CHECK(sync_dp.at("parameters_sha256") == sync_ddp.at("parameters_sha256"));
  CHECK(sync_dp.at("parameters_sha256") != dp.at("parameters_sha256"));
}
