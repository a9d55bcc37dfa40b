// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/data/collate/collated.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/ragged_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/sequential_sampler.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/prediction/generate.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "translator.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

auto next(std::vector<std::int32_t> const& tokens) {
  std::vector<Pair> rows;
  for (auto const token : tokens) rows.push_back({{}, {token}});
  return data::Collated{data::RaggedCollate{}, rows};
}

train::BeamSearchOptions const options{.beam = 2, .max_length = 4, .end = end_token};

template <class Policy, class Sampler>
std::vector<train::Generated> generated(Policy policy, Sampler sampler, Index batch_size,
                                        data::Tail tail = data::Tail::exact) {
  Trainer trainer{TinyTranslator{}, optim::SGD{}, std::move(policy), 1};
  auto const values = translator_parameters(trainer.layout().size());
  train::Predictor<TinyTranslator> predictor(TinyTranslator{}, std::span(values));
  data::DataLoader loader{
      data::InMemoryDataset{pairs()}, sampler, data::RaggedCollate{}, {.batch_size = batch_size, .tail = tail}};
  return train::generate(trainer, predictor, loader, options, next);
}

}  // namespace

TEST_CASE("each sample is decoded once, in the dataset's order, for any number of ranks") {
  TinyTranslator model;
  auto const values = translator_parameters(nn::ParameterLayout::of(model).size());
  train::Predictor<TinyTranslator> predictor(TinyTranslator{}, std::span(values));
  auto const expected =
      train::beam_search(predictor, data::Collated{data::RaggedCollate{}, pairs()}.batch(), options, next);
  auto const check = [&](std::vector<train::Generated> const& got) {
    REQUIRE(got.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      CHECK(got[i].sample == static_cast<Index>(i));
      CHECK(got[i].hypothesis.tokens == expected[i].tokens);
      CHECK(got[i].hypothesis.log_probability == expected[i].log_probability);
      CHECK(got[i].hypothesis.score == expected[i].score);
      CHECK(got[i].hypothesis.ended == expected[i].ended);
    }
  };
  for (Index const batch_size : {1, 4, 7}) {
    check(generated(parallel::SingleDevice{.threads = 1}, data::SequentialSampler{}, batch_size));
    check(generated(parallel::DataParallel{.devices = 2, .threads = 1}, data::ShuffledSampler{.seed = 2}, batch_size));
    for (int const ranks : {2, 4})
      launch::run({.threads = ranks}, [&](launch::World& world) {
        check(generated(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, data::SequentialSampler{},
                        batch_size));
        return 0;
      });
  }
}

TEST_CASE("a loader that skips samples is refused") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(generated(parallel::SingleDevice{}, data::SequentialSampler{}, 4, data::Tail::drop)),
      doctest::Contains("tail must be exact"), ConfigError);
}
