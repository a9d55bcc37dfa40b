// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/checkpoint/load_averages.hpp>

#include <doctest/doctest.h>

#include <span>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/averaged.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/checkpoint/keep_best.hpp>
#include <lockstep/train/prediction/predictor.hpp>
#include <lockstep/train/trainer/averages.hpp>
#include <lockstep/train/trainer/trainer.hpp>
#include <lockstep/train/trainer/trainer_state.hpp>

#include "temporary_folder.hpp"
#include "train/text_classifier.hpp"
#include "train/texts.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

auto texts() {
  return data::DataLoader{
      data::InMemoryDataset{uneven_texts()}, data::ShuffledSampler{.seed = 1}, data::PadCollate{}, {.batch_size = 4}};
}
TextClassifier model() { return TextClassifier({.words = 50, .longest = 24, .layers = 1}); }

/// Trains and saves a checkpoint, the state, the parameters, and the best ones.
template <class Optimizer>
std::pair<std::vector<float>, std::vector<float>> train_and_save(TemporaryFolder const& folder, Optimizer optimizer) {
  auto loader = texts(), again = texts();
  Trainer trainer{model(), optimizer, parallel::SingleDevice{.threads = 1}};
  train::KeepBest best(trainer, folder / "best.safetensors");
  trainer.fit(
      loader, train::Evaluation{again},
      {.epochs = 1, .checkpoints = {.folder = folder / "", .metadata = {{"of", "texts"}}}, .observers = {&best}});
  train::save_state(trainer, folder / "state.safetensors", {{"of", "texts"}});
  std::vector<float> const values(trainer.values().begin(), trainer.values().end());
  if constexpr (optim::averages<Optimizer>)
    return {values, train::averages(trainer)};
  else
    return {values, values};
}

}  // namespace

TEST_CASE("averages in a checkpoint and in a trainer's state are those used by evaluations") {
  for (bool const two_moments : {false, true}) {
    TemporaryFolder const folder;
    auto const [values, averages] = two_moments
                                        ? train_and_save(folder, optim::Averaged{optim::AdamW{}, 0.9})
                                        : train_and_save(folder, optim::Averaged{optim::SGD{.momentum = 0.9}, 0.9});
    REQUIRE(values != averages);
    auto of = model();
    auto const layout = nn::ParameterLayout::of(of);
    auto const checkpoint = train::newest_checkpoint(folder / "");
    for (auto const& path : {checkpoint, folder / "state.safetensors"}) {
      std::vector<float> found(averages.size());
      CHECK(train::load_averages(path, layout, found) == train::Metadata{{"of", "texts"}});
      CHECK(found == averages);
    }
    data::Collated const batch{data::PadCollate{}, uneven_texts()};
    auto const logits = [&](train::Predictor<TextClassifier> predictor) {
      auto const span = predictor.predict(batch.batch()).value.span();
      return std::vector<float>(span.begin(), span.end());
    };
    using train::Parameters;
    CHECK(logits({model(), checkpoint, Parameters::averages}) == logits({model(), averages}));
    CHECK(logits({model(), checkpoint, Parameters::values}) == logits({model(), values}));
    CHECK(logits({model(), checkpoint}) == logits({model(), values}));
    CHECK(logits({model(), folder / "best.safetensors"}) == logits({model(), averages}));
    CHECK(train::Predictor<TextClassifier>(model(), checkpoint, Parameters::averages).metadata()[0].second == "texts");

    auto damaged = read_file(checkpoint);
    damaged.back() = static_cast<char>(damaged.back() ^ 1);  // a byte of a parameter's difference from its average
    write_file(folder / "damaged", damaged);
    std::vector<float> found(averages.size(), 7);
    CHECK_THROWS_WITH_AS(train::load_averages(folder / "damaged", layout, found), doctest::Contains("the checksum"),
                         DataError);
    CHECK(found == std::vector<float>(averages.size(), 7));
  }
}

TEST_CASE("a file without averages is refused with its kind") {
  TemporaryFolder const folder;
  auto const [values, same] = train_and_save(folder, optim::AdamW{});
  auto of = model();
  auto const layout = nn::ParameterLayout::of(of);
  std::vector<float> found(values.size(), 7);
  CHECK_THROWS_WITH_AS(train::load_averages(folder / "state.safetensors", layout, found),
                       doctest::Contains("because its optimizer, AdamW, keeps none"), DataError);
  CHECK_THROWS_WITH_AS(train::load_averages(folder / "best.safetensors", layout, found),
                       doctest::Contains("nor an optimizer's state: use the parameters"), DataError);
  CHECK(found == std::vector<float>(values.size(), 7));
  CHECK_THROWS_AS(train::load_averages(folder / "state.safetensors", layout, std::span(found).first(3)), ShapeError);
}
