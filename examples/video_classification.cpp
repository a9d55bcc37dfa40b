// SPDX-License-Identifier: Apache-2.0
// Trains a 3D convolutional network to classify video clips of unbalanced classes. Reads --data, a folder with
// index.csv and .npy files, or makes synthetic clips of a disc that rests, walks, rears or circles.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/lockstep.hpp>

#include "class_predictions.hpp"
#include "video_classification/augment.hpp"
#include "video_classification/data.hpp"
#include "video_classification/model.hpp"
#include "video_classification/synthetic.hpp"

using namespace lockstep;
using video_classification::Change;
using video_classification::Clip;

namespace {

enum class ClassWeights { balanced, none };

struct Options : app::Options {
  static constexpr char about[] =
      "Trains a 3D convolutional network to classify video clips.\n\n"
      "--data takes a folder with index.csv (columns file, first_frame, label, video and optionally frames, split)\n"
      "and .npy files of uint8, [frames, height, width]. tools/cut_clips.py makes one from videos.\n"
      "docs/explanation/stories/video-classification.md has examples.";
  video_classification::ClipSize size;
  std::vector<Index> channels;
  bool synchronized = false;
  ClassWeights class_weights = ClassWeights::balanced;
  std::vector<Change> augment;
  Index samples = 1600;
  std::string predictions;
  app::Precision precision = app::Precision::fp32;

  Options() {
    batch_size = 16;
    epochs = 8;
    best_by = "f1";
  }
  void flags(app::Command& command) {
    command.add("--frames", size.frames, 0, 1024, "Frames of a clip; 0: as in the data, 8 for synthetic clips");
    command.add("--height", size.height, 0, 4096, "Height of a frame in pixels; 0: as in the data, or 32");
    command.add("--width", size.width, 0, 4096, "Width of a frame in pixels; 0: as in the data, or 32");
    command.add("--channels", channels, 1, 4096,
                "Channels of each stage; default: 16, doubled up to 256 until the shorter side has 8 pixels");
    command.add("--sync-batch-norm", synchronized, "Batch statistics over the clips of all ranks and devices");
    command.add("--class-weights", class_weights, {{"balanced", ClassWeights::balanced}, {"none", ClassWeights::none}},
                "Weight of a class in the loss: clips / (classes x clips of the class), or 1");
    command.add("--augment", augment,
                {{"flip", Change::flip}, {"brightness", Change::brightness}, {"shift", Change::shift}},
                "Random augmentation of training clips: mirror left and right, change the brightness, shift in time");
    class_predictions::add(command, predictions, "clips");
    command.add("--samples", samples, 20, 10000000, "Synthetic training clips; a quarter more for evaluation");
  }
};

/// Returns the classes of the parameters that --evaluate evaluates, whose order --data may not have.
data::ClassNames saved_classes(Options const& options) {
  if (!options.evaluate) return {};
  std::vector<std::string> names;
  try {
    std::istringstream lines(train::load_text(options.init_from, "classes"));
    for (std::string line; std::getline(lines, line);) names.push_back(line);
  } catch (DataError const&) {
    return {};  // not saved by this program; loading the parameters explains what else is wrong
  }
  return data::ClassNames(std::move(names));
}

video_classification::Parts load(Options const& options) {
  namespace synthetic = video_classification::synthetic;
  auto const or_else = [](Index given, Index otherwise) { return given != 0 ? given : otherwise; };
  synthetic::Recipe const recipe{
      .size = {or_else(options.size.frames, 8), or_else(options.size.height, 32), or_else(options.size.width, 32)},
      .training = options.samples,
      .evaluation = options.samples / 4,
      .seed = options.seed};
  auto const folder = app::data_folder(options, recipe.text(),
                                       [&](std::filesystem::path const& empty) { synthetic::write(empty, recipe); });
  return video_classification::read_parts(folder, options.eval_data, options.size, options.seed,
                                          std::max(options.cores, 1), saved_classes(options));
}

// ---- Functions for app::run: the first before ranks start, the second in each rank.

void check(Options const& options) {
  if (options.data.empty() && !options.eval_data.empty())
    throw ConfigError("--eval-data " + options.eval_data + " without --data: synthetic data have their own test part");
  if (options.data.empty()) app::check_samples(options, options.samples);
  auto const parts = load(options);
  app::check_samples(options, parts.training.size());
  if (!options.predictions.empty()) {
    std::vector<std::string> inputs{options.init_from, options.resume};
    for (auto const& clips : parts.folders)
      for (auto const& file : clips.files()) inputs.push_back(file);
    app::check_output_file("--predictions", options.predictions, inputs, options.save_dir);
  }
  for (auto const& clips : parts.folders) {
    auto const unreadable = clips.examine(Progress(stdout));
    if (unreadable.clips == 0) continue;
    if (options.on_failure == data::OnFailure::raise || unreadable.clips == clips.size())
      throw DataError(unreadable.first + (unreadable.clips > 1
                                              ? " (" + std::to_string(unreadable.clips) + " of " +
                                                    std::to_string(clips.size()) + " clips cannot be read)"
                                              : ""));
    std::printf("note: %lld of %lld clips cannot be read, the first one with the error: %s\n",
                static_cast<long long>(unreadable.clips), static_cast<long long>(clips.size()),
                unreadable.first.c_str());
  }
}

std::vector<std::int32_t> labels_of(data::Subset<video_classification::Clips> const& part,
                                    video_classification::Clips const& clips) {
  std::vector<std::int32_t> labels;
  for (Index i = 0; i < part.size(); ++i) labels.push_back(clips.label(part.original(i)));
  return labels;
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const parts = load(options);
  auto const& known = parts.folders.front();
  auto const& names = known.classes().names();
  auto const size = known.clip_size();
  data::ClassBalance const balance(labels_of(parts.training, known), names);
  if (training.is_main_rank()) {
    auto const held_out = data::ClassBalance(labels_of(parts.evaluation, parts.folders.back()), names).counts();
    std::printf("%lld clips of %s for training\n%s%lld clips of other videos for evaluation:",
                static_cast<long long>(parts.training.size()), size.text().c_str(), balance.table().c_str(),
                static_cast<long long>(parts.evaluation.size()));
    for (std::size_t i = 0; i < names.size(); ++i)
      std::printf("%s %s %lld", i == 0 ? "" : ",", names[i].c_str(), static_cast<long long>(held_out[i]));
    std::printf("\n");
    for (std::size_t i = 0; i < names.size(); ++i)
      if (balance.counts()[i] == 0 || held_out[i] == 0)
        std::printf("note: the class %s has no clips for %s; a column split in index.csv can place its videos\n",
                    names[i].c_str(), balance.counts()[i] == 0 ? "training" : "evaluation");
  }

  data::DataLoader batches{data::Transform{parts.training, video_classification::Augment(options.augment, size)},
                           data::ShuffledSampler{.seed = options.seed}, data::PadCollate{}, training.loader_options()};
  data::DataLoader evaluation{parts.evaluation, data::SequentialSampler{}, data::PadCollate{},
                              training.loader_options()};
  video_classification::VideoClassifier model(
      {.frames = size.frames,
       .height = size.height,
       .width = size.width,
       .channels =
           options.channels.empty() ? video_classification::channels_for(size.height, size.width) : options.channels,
       .class_weights =
           options.class_weights == ClassWeights::balanced ? balance.weights() : std::vector<float>(names.size(), 1.0f),
       .synchronized = options.synchronized});
  auto const classes = std::ssize(names);
  auto const report = [&](auto& trainer) {
    Progress progress(training.is_main_rank() ? stdout : nullptr);
    auto const found = trainer.evaluate(train::Evaluation{evaluation, train::ConfusionMatrix{&Clip::label, classes}},
                                        progress.steps("counting classes"));
    progress.end();
    if (training.is_main_rank()) std::fputs(train::class_report(found, names).c_str(), stdout);
    class_predictions::write(training, trainer, evaluation, &Clip::label, names, "clip",
                             [&](Index i) { return parts.evaluation.name(i); });
  };
  std::string lines;
  for (auto const& name : names) lines += name + "\n";
  training.fit(std::move(model), optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, train::Accuracy{&Clip::label}, train::F1{&Clip::label, classes}},
               {{"classes", lines}, {"clip", size.text()}}, report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
