// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/trainer/gradient_norms.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/logs/observer.hpp>

#include "train/line.hpp"
#include "train/text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

using Norms = std::vector<std::pair<std::string, double>>;

/// Compares the norms with the norm of all, which is measured when gradients are clipped.
template <class Trainer>
struct Watch : train::Observer {
  explicit Watch(Trainer& watched) : trainer(&watched) {}
  void step(train::StepReport const& report) override {
    last = train::gradient_norms(*trainer);
    double squares = 0;
    for (auto const& [name, norm] : last) squares += norm * norm;
    CHECK(std::sqrt(squares) == doctest::Approx(report.gradient_norm).epsilon(1e-6));
    ++steps;
  }
  Trainer* trainer;
  Norms last;
  int steps = 0;
};

Norms norms_of(auto policy, Index batch) {
  data::DataLoader loader{data::InMemoryDataset{uneven_texts()},
                          data::ShuffledSampler{.seed = 1},
                          data::PadCollate{},
                          {.batch_size = batch}};
  Trainer trainer{TextClassifier({.words = 50, .longest = 24, .layers = 1}), optim::AdamW{}, std::move(policy)};
  Watch watch(trainer);
  trainer.fit(loader, {.max_steps = 3, .accumulation = 2, .clip_norm = 1e9, .observers = {&watch}});
  CHECK(watch.steps == 3);
  return watch.last;
}

}  // namespace

TEST_CASE("the norms of all parameters give the total norm, on every rank, under every policy") {
  auto const one = norms_of(parallel::SingleDevice{.threads = 1}, 8);
  auto const equal = [&](Norms const& other) {
    REQUIRE(other.size() == one.size());
    for (std::size_t i = 0; i < one.size(); ++i) {
      CHECK(other[i].first == one[i].first);
      CHECK(other[i].second == doctest::Approx(one[i].second).epsilon(1e-3));
      CHECK(one[i].second > 0);
    }
  };
  equal(norms_of(parallel::DataParallel{.devices = 2, .threads = 1}, 4));
  equal(norms_of(parallel::Reproducible{parallel::SingleDevice{.threads = 1}, 4}, 2));
  launch::run({.threads = 2}, [&](launch::World& world) {
    equal(norms_of(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, 4));
    return 0;
  });
}

TEST_CASE("a norm is the mean gradient's, in the last step") {
  auto loader = line::loader(8, 4);
  Trainer trainer{line::Model{}, optim::SGD{.learning_rate = 0.1}, parallel::SingleDevice{.threads = 1}};
  CHECK(train::gradient_norms(trainer) == Norms{{"slope", 0}});
  for (Index step = 0; step < 2; ++step) {
    loader.start(trainer.split(), 0, step, 1);
    auto const held = loader.next();
    double gradient = 0;  // gradient of the mean of (slope x - y)^2
    auto const slope = static_cast<double>(trainer.values()[0]);
    auto const x = held.batches()[0][&line::Point::x].values, y = held.batches()[0][&line::Point::y].values;
    for (Index row = 0; row < 4; ++row)
      gradient +=
          2 * (slope * static_cast<double>(x(row)) - static_cast<double>(y(row))) * static_cast<double>(x(row)) / 4;
    trainer.step(held);
    auto const norms = train::gradient_norms(trainer);
    REQUIRE(norms.size() == 1);
    CHECK(norms[0].second == doctest::Approx(std::abs(gradient)));
  }
}

TEST_CASE("ranks that shard the optimizer have no gradients of their own") {
  launch::run({.threads = 2}, [&](launch::World& world) {
    parallel::DistributedDataParallel policy{comm::connect(world), 4096, 1};
    policy.shard_optimizer = true;
    Trainer trainer{line::Model{}, optim::SGD{}, std::move(policy)};
    CHECK_THROWS_WITH_AS(static_cast<void>(train::gradient_norms(trainer)), doctest::Contains("shard_optimizer"),
                         ConfigError);
    return 0;
  });
}
