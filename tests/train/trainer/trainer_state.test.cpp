// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/trainer_state.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/autograd/half_precision.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "temporary_folder.hpp"
#include "train/text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

TextClassifier model() { return TextClassifier({.words = 50, .longest = 24, .layers = 1, .dropout = 0.3}); }
optim::AdamW adamw() { return {.learning_rate = 0.01}; }
parallel::SingleDevice single() { return {.threads = 1}; }
parallel::DataParallel two() { return {.devices = 2, .threads = 1}; }

/// This many steps, with dropout, each on its own texts: the first half is the first shard's.
void step(auto& trainer, int from, int to) {
  auto const texts = uneven_texts();
  for (int i = from; i < to; ++i) {
    std::vector<data::Collated<data::PadCollate, Text>> halves;
    for (std::size_t half : {0u, 1u}) {
      auto const begin = texts.begin() + 8 * (i % 4) + static_cast<std::ptrdiff_t>(4 * half);
      halves.emplace_back(data::PadCollate{}, std::vector<Text>(begin, begin + 4), static_cast<Index>(4 * half));
    }
    auto const split = trainer.split();
    if (split.all == 1 || split.count == 2)
      trainer.step(std::vector{halves[0].batch(), halves[1].batch()});
    else
      trainer.step(halves[static_cast<std::size_t>(split.first)].batch());
  }
}
std::vector<float> values_of(auto const& trainer) { return {trainer.values().begin(), trainer.values().end()}; }

}  // namespace

TEST_CASE("manual steps resume as without a pause, under any policy") {
  TemporaryFolder const folder;
  auto const path = folder / "state.safetensors";
  Trainer whole{model(), adamw(), two()};
  step(whole, 0, 7);
  auto const expected = values_of(whole);

  {
    Trainer first{model(), adamw(), two()};
    step(first, 0, 4);
    train::save_state(first, path, {{"place", "4"}});
  }
  CHECK(train::load_text(path, "place") == "4");
  Trainer rest{model(), adamw(), two()};
  train::load_state(rest, path);
  step(rest, 4, 7);
  CHECK(values_of(rest) == expected);

  for (bool const sharded : {false, true})
    launch::run({.threads = 2}, [&](launch::World& world) {
      auto const trainer = [&](auto const& use) {
        parallel::DistributedDataParallel policy{comm::connect(world), 256, 1};
        policy.shard_optimizer = sharded;
        Trainer on_ranks{model(), adamw(), std::move(policy)};
        use(on_ranks);
      };
      trainer([&](auto& ranks) {  // saved by devices
        train::load_state(ranks, path);
        step(ranks, 4, 7);
        CHECK(values_of(ranks) == expected);
      });
      trainer([&](auto& ranks) {  // and saved by the ranks themselves, which all may load at once
        step(ranks, 0, 2);
        train::save_state(ranks, folder / "ranks");
        step(ranks, 2, 3);
        train::load_state(ranks, folder / "ranks");
        step(ranks, 2, 7);
        CHECK(values_of(ranks) == expected);
      });
      return 0;
    });
}

TEST_CASE("a state is a file of parameters too, but parameters alone are not a state") {
  TemporaryFolder const folder;
  Trainer trained{model(), adamw(), single()}, other{model(), adamw(), single()};
  step(trained, 0, 2);
  train::save_state(trained, folder / "state");
  other.load(folder / "state");
  CHECK(values_of(other) == values_of(trained));
  trained.save(folder / "parameters");
  CHECK_THROWS_WITH_AS(train::load_state(other, folder / "parameters"),
                       doctest::Contains("holds parameters without the state of training; load_state reads files"),
                       DataError);
}

TEST_CASE("an invalid state is refused with file, name and value") {
  auto const text = train::detail::TrainerState{{7, 2}, 5, {1024, 3, 1}, "AdamW"}.to_json();
  auto const read = train::detail::TrainerState::from_json(text, "file");
  CHECK(read.to_json() == text);
  auto const refuses = [&](std::string const& part, std::string const& other, char const* message) {
    auto damaged = text;
    REQUIRE(damaged.find(part) != std::string::npos);
    damaged.replace(damaged.find(part), part.size(), other);
    CHECK_THROWS_WITH_AS(static_cast<void>(train::detail::TrainerState::from_json(damaged, "file")),
                         doctest::Contains(message), DataError);
  };
  refuses("\"version\":1", "\"version\":2", "file: the state of the trainer has version 2");
  refuses("\"steps\":7", "\"steps\":-7", "file: in the state of the trainer steps is -7, which no trainer writes");
  refuses("\"epochs\":2", "\"epochs\":1152921504606846976", "epochs is 1152921504606846976");
  refuses("\"good_steps\":3", "\"good_steps\":8", "good_steps is 8");
  refuses("\"loss_scale\":1024", "\"loss_scale\":1000", "loss_scale is 1000");
  refuses("\"seed\":\"5\"", "\"seed\":\"5x\"", "seed is 5x");
}

TEST_CASE("the loss scale continues if activations are float16") {
  TemporaryFolder const folder;
  auto const make = [] { return Trainer{nn::InFloat16(model()), adamw(), single()}; };
  auto whole = make(), first = make(), rest = make();
  step(whole, 0, 5);
  step(first, 0, 3);
  train::save_state(first, folder / "state");
  train::load_state(rest, folder / "state");
  step(rest, 3, 5);
  CHECK(values_of(rest) == values_of(whole));
}

TEST_CASE("a file saved with another seed or optimizer is refused with both, and changes nothing") {
  TemporaryFolder const folder;
  Trainer trained{model(), adamw(), single(), 1};
  step(trained, 0, 1);
  train::save_state(trained, folder / "state");
  Trainer seed{model(), adamw(), single(), 2};
  auto const before = values_of(seed);
  CHECK_THROWS_WITH_AS(train::load_state(seed, folder / "state"),
                       doctest::Contains("was saved with the seed 1, but training would continue with 2"), ConfigError);
  CHECK(values_of(seed) == before);
  Trainer adam{model(), optim::Adam{}, single(), 1};
  CHECK_THROWS_WITH_AS(train::load_state(adam, folder / "state"),
                       doctest::Contains("was saved with the optimizer AdamW, but training would continue with Adam"),
                       ConfigError);
  Trainer sgd{model(), optim::SGD{}, single(), 1};
  CHECK_THROWS_WITH_AS(train::load_state(sgd, folder / "state"), doctest::Contains("tensors, and the model with its"),
                       DataError);
}
