// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
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

#include "temporary_folder.hpp"
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

/// Calls use(trainer, predictor, loader) for `rounds` times the pairs.
template <class Policy, class Sampler>
auto with_translator(Policy policy, Sampler sampler, data::DataLoaderOptions const& loading, int rounds,
                     auto const& use) {
  Trainer trainer{TinyTranslator{}, optim::SGD{}, std::move(policy), 1};
  auto const values = translator_parameters(trainer.layout().size());
  train::Predictor<TinyTranslator> predictor(TinyTranslator{}, std::span(values));
  std::vector<Pair> all;
  for (int round = 0; round < rounds; ++round)
    for (auto const& pair : pairs()) all.push_back(pair);
  data::DataLoader loader{data::InMemoryDataset{all}, sampler, data::RaggedCollate{}, loading};
  return use(trainer, predictor, loader);
}
template <class Policy, class Sampler>
std::vector<train::Generated> generated(Policy policy, Sampler sampler, Index batch_size,
                                        data::Tail tail = data::Tail::exact) {
  return with_translator(std::move(policy), sampler, {.batch_size = batch_size, .tail = tail}, 1,
                         [](auto& trainer, auto& predictor, auto& loader) {
                           return train::generate(trainer, predictor, loader, options, next);
                         });
}
/// Returns the results that the first rank receives; nothing on other ranks.
template <class Policy, class Sampler>
std::vector<train::Generated> received(Policy policy, Sampler sampler, Index batch_size) {
  return with_translator(std::move(policy), sampler, {.batch_size = batch_size}, 1,
                         [](auto& trainer, auto& predictor, auto& loader) {
                           std::vector<train::Generated> all;
                           train::generate_each(trainer, predictor, loader, options, next,
                                                [&](train::Generated const& each) { all.push_back(each); });
                           if (trainer.rank() > 0) CHECK(all.empty());
                           return all;
                         });
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
        auto const policy = [&] { return parallel::DistributedDataParallel{comm::connect(world), 4096, 1}; };
        check(generated(policy(), data::SequentialSampler{}, batch_size));
        auto const first = received(policy(), data::ShuffledSampler{.seed = 2}, batch_size);
        if (world.rank == 0) check(first);
        return 0;
      });
    check(received(parallel::SingleDevice{.threads = 1}, data::SequentialSampler{}, batch_size));
  }
}

TEST_CASE("a loader that skips samples is refused") {
  CHECK_THROWS_WITH_AS(
      static_cast<void>(generated(parallel::SingleDevice{}, data::SequentialSampler{}, 4, data::Tail::drop)),
      doctest::Contains("tail must be exact"), ConfigError);
}

TEST_CASE("generation holds a part of the results in memory, with equal results for 1 to 3 ranks") {
  TemporaryFolder const folder;
  constexpr std::size_t part = 2000;
  constexpr int rounds = 60;
  auto const check = [&](auto policy) {
    with_translator(std::move(policy), data::ShuffledSampler{.seed = 4}, {.batch_size = 5}, rounds,
                    [&](auto& trainer, auto& predictor, auto& loader) {
                      train::detail::SortedRows sorted(folder / "generated", part);
                      train::detail::generate_sorted(trainer, predictor, loader, options, next, {}, sorted);
                      CHECK(sorted.held_bytes() <= 2 * part);
                      if (trainer.rank() > 0) {
                        CHECK(sorted.held_bytes() < 100);
                        return;
                      }
                      CHECK(sorted.runs() > 1);
                      Index count = 0;
                      std::vector<train::Hypothesis> found;
                      sorted.each([&](train::detail::NumberedLine const& line) {
                        auto const each = train::detail::generated_from(line);
                        CHECK(each.sample == count++);
                        if (each.sample < std::ssize(pairs())) return found.push_back(each.hypothesis);
                        auto const& same = found[static_cast<std::size_t>(each.sample % std::ssize(pairs()))];
                        CHECK(each.hypothesis.tokens == same.tokens);
                        CHECK(each.hypothesis.score == same.score);
                      });
                      CHECK(count == rounds * std::ssize(pairs()));
                    });
  };
  check(parallel::SingleDevice{.threads = 1});
  for (int const ranks : {2, 3})
    launch::run({.threads = ranks}, [&](launch::World& world) {
      check(parallel::DistributedDataParallel{comm::connect(world), 4096, 1});
      return 0;
    });
  CHECK(std::filesystem::is_empty(folder / ""));
}

namespace {

/// Generates at each evaluation, over all ranks, and counts the samples whose tokens are those of the first evaluation.
template <class AnyTrainer, class Prompts>
class ExactMatch final : public train::Observer {
 public:
  ExactMatch(AnyTrainer& trainer, Prompts& prompts) : trainer_(trainer), prompts_(prompts) {}
  void evaluation(train::EvaluationReport const&) override {
    predictor_.set(trainer_);
    Index exact = 0;
    for (auto const& each : train::generate(trainer_, predictor_, prompts_, {.beam = 1, .max_length = 4}, next)) {
      if (counts.empty()) first_.push_back(each.hypothesis.tokens);
      exact += each.hypothesis.tokens == first_[static_cast<std::size_t>(each.sample)] ? 1 : 0;
    }
    counts.push_back(exact);
  }
  std::vector<Index> counts;

 private:
  AnyTrainer& trainer_;
  Prompts& prompts_;
  train::Predictor<TinyTranslator> predictor_{TinyTranslator{}, trainer_};
  std::vector<std::vector<std::int32_t>> first_;
};

/// Returns the counts of each evaluation of a fit.
template <class Policy>
std::vector<Index> counts_of_fit(Policy policy, Index batch_size) {
  Trainer trainer{TinyTranslator{}, optim::SGD{.learning_rate = 1}, std::move(policy), 1};
  auto all = pairs();  // prompts of 1 to 3 tokens
  for (std::size_t i = 0; i < all.size(); ++i)
    for (std::size_t t = 0; t < i % 3; ++t) all[i].tokens.push_back(3);
  data::DataLoader loader{data::InMemoryDataset{all},
                          data::SequentialSampler{},
                          data::RaggedCollate{},
                          {.batch_size = 6 / trainer.ranks()}};
  data::DataLoader evaluation{
      data::InMemoryDataset{all}, data::SequentialSampler{}, data::RaggedCollate{}, {.batch_size = 2}};
  data::DataLoader prompts{
      data::InMemoryDataset{all}, data::SequentialSampler{}, data::RaggedCollate{}, {.batch_size = batch_size}};
  ExactMatch observer(trainer, prompts);
  trainer.fit(loader, train::Evaluation{evaluation}, {.epochs = 4, .observers = {&observer}});
  return observer.counts;
}

}  // namespace

TEST_CASE("an observer on all ranks generates from prompts of unequal lengths at each evaluation") {
  auto const expected = counts_of_fit(parallel::SingleDevice{.threads = 1}, 6);
  REQUIRE(expected.size() == 4);
  CHECK(expected.front() == 6);
  CHECK(expected.back() < 6);  // training changes the texts
  CHECK(counts_of_fit(parallel::SingleDevice{.threads = 1}, 1) == expected);
  for (int const ranks : {2, 3})
    launch::run({.threads = ranks}, [&](launch::World& world) {
      CHECK(counts_of_fit(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, 2) == expected);
      return 0;
    });
}
