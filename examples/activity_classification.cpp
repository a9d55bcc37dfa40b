// SPDX-License-Identifier: Apache-2.0
// Trains a network to classify human activities from the motion of a phone. The data set is "Human Activity Recognition
// Using Smartphones" (--data FOLDER) or, by default, synthetic motion in the same file format.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <lockstep/app/check_samples.hpp>
#include <lockstep/app/run.hpp>
#include <lockstep/app/synthetic_data.hpp>
#include <lockstep/data/source/uci_har_dataset.hpp>
#include <lockstep/lockstep.hpp>

#include "activity_classification/data.hpp"
#include "activity_classification/model.hpp"
#include "class_predictions.hpp"
#include "transformer_flags.hpp"

using namespace lockstep;
using activity_classification::Mode;
using data::HarSample, data::UciHarDataset;

namespace {

std::vector<std::string> const names{"walking", "upstairs", "downstairs", "sitting", "standing", "lying"};

enum class ClassWeights { none, balanced };

struct Options : app::Options {
  static constexpr char about[] =
      "Trains a network to classify activities from the motion of a phone.\n\n"
      "--data takes the folder that the archive of UCI HAR unpacks to: train/y_train.txt, nine files in\n"
      "train/Inertial Signals/, and optionally test/ with the same files.\n"
      "docs/explanation/stories/activity-classification.md has examples.";
  activity_classification::Sizes sizes;
  double label_smoothing = 0;
  ClassWeights class_weights = ClassWeights::none;
  Index samples = 2000, cache_mib = 64;
  std::string predictions;
  app::Precision precision = app::Precision::fp32;

  Options() { epochs = 10, prefetch = 8; }
  void flags(app::Command& command) {
    command.add("--mode", sizes.mode,
                {{"flatten", Mode::flatten}, {"conv", Mode::conv}, {"transformer", Mode::transformer}},
                "Network: a perceptron over the whole window, convolutions, or a transformer over its steps");
    command.add("--width", sizes.channels, 1, 4096,
                "Channels of the first convolution, with --mode conv; the others have twice as many");
    command.add("--hidden", sizes.hidden, 1, 65536,
                "Width of the first hidden layer, with --mode flatten; the second has half of it");
    transformer_flags::add(command, sizes);
    command.add("--label-smoothing", label_smoothing, 0, 1, "Label smoothing: probability spread over all classes");
    command.add("--class-weights", class_weights, {{"none", ClassWeights::none}, {"balanced", ClassWeights::balanced}},
                "Weights of the classes in the loss; balanced: windows / (classes * windows of the class)");
    class_predictions::add(command, predictions, "windows");
    command.add("--cache-mib", cache_mib, 0, 1 << 20,
                "Memory of a rank, in MiB, that keeps parsed windows of each part for later epochs; 0: none");
    command.add("--samples", samples, 20, 1000000,
                "Synthetic windows for training, without --data; a quarter as many more for evaluation");
  }
};

struct Parts {
  UciHarDataset training_files, evaluation_files;
  data::Subset<UciHarDataset> training, evaluation;
};

/// Returns training and evaluation data: the data set's own parts or, without a test part, a tenth of the people for
/// evaluation.
Parts load(Options const& options) {
  auto const recipe = std::to_string(options.samples) + " windows of synthetic motion";
  auto const folder = app::data_folder(options, recipe, [&](std::filesystem::path const& to) {
    activity_classification::SyntheticMotion const motion(1);
    activity_classification::write_part(to, "train", motion, 0, options.samples);
    activity_classification::write_part(to, "test", motion, options.samples, (options.samples + 3) / 4);
  });
  auto const need = [](std::string const& path) {
    if (!std::filesystem::exists(path))
      throw DataError(path +
                      ": does not exist; a folder of data is what the archive of UCI HAR unpacks to, and has "
                      "train/y_train.txt, train/Inertial Signals/ and optionally test/: see "
                      "docs/explanation/stories/activity-classification.md");
  };
  need(folder + "/train/y_train.txt");
  UciHarDataset const known(folder, "train");
  auto const& tests = options.eval_data.empty() ? folder : options.eval_data;
  if (options.eval_data.empty() && !std::filesystem::exists(tests + "/test")) {
    auto const parts = data::hold_out(known, 0.1, options.seed);  // by person: no one is in both parts
    return {known, known, parts.training, parts.evaluation};
  }
  need(tests + "/test/y_test.txt");
  UciHarDataset const test(tests, "test");
  auto const all = [](UciHarDataset const& files) {
    std::vector<Index> indices(static_cast<std::size_t>(files.size()));
    std::iota(indices.begin(), indices.end(), Index{0});
    return data::Subset(files, std::move(indices));
  };
  return {known, test, all(known), all(test)};
}

void check(Options const& options) {
  if (options.data.empty() && !options.eval_data.empty())
    throw ConfigError("--eval-data " + options.eval_data + " without --data: the synthetic data has its own test part");
  using Use = std::pair<std::string_view, std::vector<Mode>>;
  constexpr std::array words{"flatten", "conv", "transformer"};
  auto const transformer = {Mode::transformer};
  for (auto const& [flag, modes] :
       {Use{"--width", {Mode::conv}}, Use{"--hidden", {Mode::flatten}},
        Use{"--dropout", {Mode::flatten, Mode::transformer}}, Use{"--d-model", transformer},
        Use{"--num-layers", transformer}, Use{"--num-heads", transformer}, Use{"--feed-forward", transformer}})
    if (std::ranges::count(options.given, flag) > 0 && std::ranges::count(modes, options.sizes.mode) == 0)
      throw ConfigError(std::string(flag) + " with --mode " + words[static_cast<std::size_t>(options.sizes.mode)] +
                        ": this network has no such size; leave " + std::string(flag) + " out");
  transformer_flags::check(options.sizes);
  auto const parts = load(options);
  app::check_samples(options, parts.training.size());
  if (!options.predictions.empty())
    app::check_output_file("--predictions", options.predictions,
                           {options.data + "/train", options.data + "/test", options.eval_data + "/test",
                            options.init_from, options.resume},
                           options.save_dir);
  if (options.on_failure != data::OnFailure::raise) return;  // unreadable windows are left out or replaced
  parts.training_files.check();
  parts.evaluation_files.check();
}

int train_rank(app::Training<Options>& training) {
  auto const& options = training.options();
  auto const parts = load(options);
  auto const loader = [&](data::Subset<UciHarDataset> const& part, auto sampler) {
    return data::DataLoader{data::Cache{part, options.cache_mib << 20}, sampler, data::PadCollate{},
                            training.loader_options()};
  };
  auto batches = loader(parts.training, data::ShuffledSampler{.seed = options.seed});
  auto evaluation = loader(parts.evaluation, data::SequentialSampler{});

  std::vector<std::int32_t> labels;
  for (Index i = 0; i < parts.training.size(); ++i)
    labels.push_back(parts.training_files.label(parts.training.original(i)));
  data::ClassBalance const balance(labels, names);
  activity_classification::LossOptions loss{options.label_smoothing, {}};
  if (options.class_weights == ClassWeights::balanced) {
    loss.class_weights = balance.weights();
    if (training.is_main_rank()) std::printf("%s", balance.table().c_str());
  }
  auto const classes = UciHarDataset::classes;
  auto const report = [&](auto& trainer) {
    auto const found =
        trainer.evaluate(train::Evaluation{evaluation, train::ConfusionMatrix{&HarSample::label, classes}});
    if (training.is_main_rank()) std::printf("%s", train::class_report(found, names).c_str());
    class_predictions::write(training, trainer, evaluation, &HarSample::label, names, "window",
                             [&](Index i) { return parts.evaluation.name(i); });
  };
  training.fit(activity_classification::ActivityClassifier(options.sizes, loss),
               optim::AdamW{.weight_decay = options.weight_decay}, batches,
               train::Evaluation{evaluation, train::Accuracy{&HarSample::label}, train::F1{&HarSample::label, classes}},
               {}, report);
  return 0;
}

}  // namespace

int main(int argc, char** argv) { return app::run(argc, argv, check, train_rank); }
