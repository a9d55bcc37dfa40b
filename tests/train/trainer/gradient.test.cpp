// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/gradient.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/error.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/trainer/gradient_norms.hpp>

#include "train/line.hpp"
#include "train/text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

/// Compares the gradients of a step by SGD with the change of the parameters and with their norms. A table with
/// gradients by rows is among them.
void check(auto policy, Index batch) {
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = batch}};
  constexpr float rate = 4096;
  Trainer trainer{TextClassifier({.words = 50, .longest = 24, .layers = 1}), optim::SGD{.learning_rate = rate},
                  std::move(policy)};
  std::vector<float> const before(trainer.values().begin(), trainer.values().end());
  trainer.fit(loader, {.max_steps = 1, .accumulation = 2});
  auto const after = trainer.values();
  auto const norms = train::gradient_norms(trainer);
  REQUIRE(norms.size() == trainer.layout().entries().size());
  for (std::size_t i = 0; i < norms.size(); ++i) {
    auto const& entry = trainer.layout().entries()[i];
    CAPTURE(entry.name);
    auto const gradient = train::gradient(trainer, entry.name);
    REQUIRE(gradient.size() == static_cast<std::size_t>(entry.size));
    double squares = 0, largest = 0, most = 0;
    for (std::size_t k = 0; k < gradient.size(); ++k) {
      auto const at = static_cast<std::size_t>(entry.offset) + k;
      auto const change = (static_cast<double>(before[at]) - static_cast<double>(after[at])) / rate;
      squares += static_cast<double>(gradient[k]) * static_cast<double>(gradient[k]);
      largest = std::max(largest, std::abs(change));
      most = std::max(most, std::abs(static_cast<double>(gradient[k]) - change));
    }
    CHECK(most <= 1e-5 * largest + 1e-9);
    CHECK(std::sqrt(squares) == doctest::Approx(norms[i].second).epsilon(1e-5));
  }
}

}  // namespace

TEST_CASE("the gradient of each parameter is the mean's, under every policy") {
  check(parallel::SingleDevice{.threads = 1}, 8);
  check(parallel::DataParallel{.devices = 2, .threads = 1}, 4);
  check(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}, 2);
  launch::run({.threads = 2}, [&](launch::World& world) {
    check(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, 4);
    return 0;
  });
}

TEST_CASE("it is zero before the first step; an unknown name and a sharded optimizer are refused") {
  Trainer trainer{line::Model{}, optim::SGD{}, parallel::SingleDevice{.threads = 1}};
  CHECK(train::gradient(trainer, "slope") == std::vector<float>{0});
  CHECK_THROWS_WITH_AS(static_cast<void>(train::gradient(trainer, "weight")),
                       "gradient: the model has no parameter \"weight\"; it has slope", ConfigError);
  launch::run({.threads = 2}, [&](launch::World& world) {
    parallel::DistributedDataParallel policy{comm::connect(world), 4096, 1};
    policy.shard_optimizer = true;
    Trainer sharded{line::Model{}, optim::SGD{}, std::move(policy)};
    CHECK_THROWS_WITH_AS(static_cast<void>(train::gradient(sharded, "slope")),
                         doctest::Contains("gradient: with shard_optimizer"), ConfigError);
    return 0;
  });
}
