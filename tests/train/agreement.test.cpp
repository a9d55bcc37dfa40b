// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/data/collate/in_memory_dataset.hpp>
#include <lockstep/data/collate/pad_collate.hpp>
#include <lockstep/data/loader/data_loader.hpp>
#include <lockstep/data/sampler/shuffled_sampler.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/single_device.hpp>
#include <lockstep/train/metrics/accuracy.hpp>
#include <lockstep/train/trainer/trainer.hpp>

#include "losses.hpp"
#include "parallel/farthest.hpp"
#include "text_classifier.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

constexpr Index width = 16, inner = 32, longest = 12, words = 40, layers = 2;
constexpr Index global_batch = 16;

TextClassifier classifier(double dropout) {
  return TextClassifier({.words = words, .longest = longest, .layers = layers, .width = width, .dropout = dropout});
}

// Texts of uneven length whose words indicate their class.
std::vector<Text> texts(int count) {
  std::vector<Text> all;
  for (int i = 0; i < count; ++i) {
    auto const draw = [&](int k, int below) {
      return static_cast<std::int32_t>(mix(static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(k)) %
                                       static_cast<std::uint64_t>(below));
    };
    Text text{{}, draw(0, 3)};
    for (int t = 0; t < 1 + draw(1, longest); ++t)
      text.tokens.push_back(
          1 + (draw(2 * t + 2, 2) == 0 ? 13 * text.label + draw(2 * t + 3, 13) : draw(2 * t + 3, words - 1)));
    all.push_back(text);
  }
  return all;
}

// Stores the gradient of the mean in place of the parameters, so that tests can read it.
struct TakeGradient {
  double learning_rate = 1;
  static constexpr int states = 0;
  template <class Scalar, class Space>
  void step(memory::Stream<Space>, optim::Slice<Scalar, Space> slice, optim::StepScalars<Space> const* scalars) const {
    for (Index i = 0; i < slice.count; ++i)
      slice.values[i] = slice.gradients[i] * static_cast<Scalar>(scalars->gradient_scale());
  }
};

struct Outcome {
  std::vector<float> values;
  std::vector<double> losses;
};

struct Setting {
  std::vector<Text> data = texts(50);  // 50 = 3 global batches and a short one
  double dropout = 0.1;
  Index steps = 50;
  int accumulation = 1;
  int workers = 1;
  int prefetch = 2;
  std::uint64_t order = 3;
  Index held_out = 0, evaluated_at_once = 4;
  std::uint64_t evaluation_order = 0;
  data::Tail tail = data::Tail::exact;
};

// One global batch, for any number of shards, and the bits of all results.
template <class Optimizer, class Policy>
Outcome train_with(Policy policy, Optimizer optimizer, Setting const& setting) {
  auto const parts = policy.all_shards() * setting.accumulation;
  Trainer trainer(classifier(setting.dropout), optimizer, std::move(policy), 7);
  data::DataLoader loader(data::InMemoryDataset(setting.data), data::ShuffledSampler{.seed = setting.order},
                          data::PadCollate{},
                          {.batch_size = std::max<Index>(1, global_batch / parts),
                           .workers = setting.workers,
                           .prefetch = setting.prefetch,
                           .tail = setting.tail});
  Losses losses;
  FitOptions options{
      .epochs = 1000, .max_steps = setting.steps, .accumulation = setting.accumulation, .observers = {&losses}};
  options.equal_on_all_ranks = {{"heads", "2"}, {"dropout", std::to_string(setting.dropout)}};
  if (setting.held_out > 0) {
    data::DataLoader evaluation(data::InMemoryDataset(texts(static_cast<int>(setting.held_out))),
                                data::ShuffledSampler{.seed = setting.evaluation_order}, data::PadCollate{},
                                {.batch_size = setting.evaluated_at_once});
    trainer.fit(loader, train::Evaluation{evaluation}, options);
  } else {
    trainer.fit(loader, options);
  }
  return {{trainer.values().begin(), trainer.values().end()}, losses.values};
}

template <class Optimizer>
Outcome single(Optimizer optimizer, Setting const& setting, int threads = 1) {
  return train_with(parallel::SingleDevice{.threads = threads}, optimizer, setting);
}
template <class Optimizer>
Outcome dp(int devices, Optimizer optimizer, Setting const& setting, int threads = 1) {
  return train_with(parallel::DataParallel{.devices = devices, .threads = threads}, optimizer, setting);
}
template <class Optimizer>
Outcome ddp(int ranks, Optimizer optimizer, Setting const& setting, int threads = 1, std::size_t bucket_bytes = 4096) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    outcomes[static_cast<std::size_t>(world.rank)] =
        train_with(parallel::DistributedDataParallel{comm::connect(world), bucket_bytes, threads}, optimizer, setting);
    return 0;
  });
  for (auto const& outcome : outcomes) CHECK(outcome.values == outcomes[0].values);  // replicas never diverge
  return outcomes[0];
}

// Largest number of roundings between a sample's input and an element of its gradient: each layer's products and sums
// forward and backward (attention over the tokens, four projections, the feed-forward pair, two norms), then the sum
// over tokens.
constexpr Index chain = 2 * layers * (2 * longest + 4 * width + width + inner + 4 * width) + longest;

// Bound on the difference of two orders of one float32 sum. A sample's gradient has at most `chain` roundings and the
// sum over n samples n more, each of eps times a term. Roundings are almost independent, so m of them sum to more than
// 6 sqrt(m) eps once in 10^9; twice, because both results have errors. Terms may cancel in an element (a key's bias has
// only rounding as gradient), so the bound uses the largest sum of |gradient| in the model.
double gradient_bound(Setting const& setting) {
  std::vector<double> sums;
  auto const n = std::ssize(setting.data);
  for (auto const& text : setting.data) {
    auto one = setting;
    one.data = {text};
    auto const outcome = single(TakeGradient{}, one);
    sums.resize(outcome.values.size());
    for (std::size_t i = 0; i < sums.size(); ++i)
      sums[i] += std::abs(double{outcome.values[i]}) / static_cast<double>(n);
  }
  double const epsilon = std::numeric_limits<float>::epsilon() / 2;
  return 2 * 6 * std::sqrt(static_cast<double>(n + chain)) * epsilon * *std::ranges::max_element(sums);
}

}  // namespace

TEST_CASE("the first step's gradient is equal within float32 rounding, for any division of the batch") {
  Setting setting{.data = texts(global_batch), .dropout = 0, .steps = 1};
  auto const bound = gradient_bound(setting);
  auto const expected = single(TakeGradient{}, setting);
  REQUIRE(farthest(expected.values, std::vector<float>(expected.values.size())) > 1e3 * bound);
  auto const check = [&](std::string const& what, Outcome const& outcome) {
    CAPTURE(what);
    CHECK(outcome.values != expected.values);  // or there is nothing to bound
    CHECK(farthest(outcome.values, expected.values) <= bound);
  };
  check("dp(2)", dp(2, TakeGradient{}, setting));
  check("dp(4)", dp(4, TakeGradient{}, setting));
  check("ddp(2)", ddp(2, TakeGradient{}, setting));
  check("ddp(4)", ddp(4, TakeGradient{}, setting));
  auto halves = setting;
  halves.accumulation = 2;
  check("two micro-batches", single(TakeGradient{}, halves));
}

TEST_CASE("50 SGD steps end with equal parameters within the rounding of 50 steps") {
  Setting const setting;
  optim::SGD const sgd{.learning_rate = 0.1};
  auto const expected = single(sgd, setting);
  // Each step has an error of the rate times the gradient's bound and passes on earlier errors almost unchanged,
  // because rate times curvature is far below 1.
  double const bound = 50 * sgd.learning_rate * gradient_bound({.data = texts(global_batch), .dropout = 0, .steps = 1});
  CHECK(farthest(expected.values, dp(2, sgd, setting).values) <= bound);
  CHECK(farthest(expected.values, ddp(2, sgd, setting).values) <= bound);
  CHECK(farthest(expected.values, ddp(4, sgd, setting).values) <= bound);
  CHECK(expected.losses.back() < expected.losses.front());
}

TEST_CASE("AdamW's losses are equal to a thousandth") {
  Setting const setting;
  optim::AdamW const adamw{.learning_rate = 3e-3};
  auto const expected = single(adamw, setting);
  CHECK(expected.losses.back() < 0.8 * expected.losses.front());
  for (auto const& outcome : {dp(2, adamw, setting), ddp(2, adamw, setting), ddp(4, adamw, setting)}) {
    REQUIRE(outcome.losses.size() == expected.losses.size());
    for (std::size_t i = 0; i < expected.losses.size(); ++i)
      CHECK(std::abs(outcome.losses[i] - expected.losses[i]) <= 1e-3);
  }
}

TEST_CASE("dp and ddp are bit-identical, as are repeated runs, for any threads, workers and buckets") {
  optim::AdamW const adamw{.learning_rate = 3e-3};
  for (int shards : {2, 3, 4}) {
    CAPTURE(shards);
    Setting setting{.steps = 12};
    auto const expected = dp(shards, adamw, setting).values;
    CHECK(dp(shards, adamw, setting).values == expected);
    CHECK(dp(shards, adamw, setting, 2).values == expected);
    CHECK(ddp(shards, adamw, setting).values == expected);
    CHECK(ddp(shards, adamw, setting, 3).values == expected);
    CHECK(ddp(shards, adamw, setting, 1, std::size_t{1} << 20).values == expected);
    setting.workers = 3;
    setting.prefetch = 5;
    CHECK(dp(shards, adamw, setting).values == expected);
    CHECK(ddp(shards, adamw, setting).values == expected);
    setting.workers = 0;
    setting.prefetch = 0;
    CHECK(ddp(shards, adamw, setting).values == expected);
  }
  Setting const setting{.steps = 12};
  auto const expected = single(adamw, setting).values;
  CHECK(single(adamw, setting).values == expected);
  CHECK(single(adamw, setting, 2).values == expected);
  CHECK(single(adamw, setting, 3).values == expected);
  CHECK(ddp(1, adamw, setting).values == expected);
  CHECK(dp(1, adamw, setting).values == expected);
}

TEST_CASE("two optimizers, one of them Muon, give equal bits under dp and ddp, and ranks compare settings and rules") {
  using Rule = bool (*)(std::string_view, std::span<Index const>);
  Rule const matrices = [](std::string_view name, std::span<Index const> shape) {
    return shape.size() == 2 && !name.starts_with("embedding");
  };
  optim::Partitioned const both{optim::Muon{.learning_rate = 0.01}, optim::AdamW{.learning_rate = 3e-3}, matrices};
  Setting setting{.steps = 12};
  auto const expected = dp(2, both, setting);
  CHECK(expected.losses.back() < expected.losses.front());
  CHECK(dp(2, both, setting, 2).values == expected.values);
  CHECK(ddp(2, both, setting).values == expected.values);
  CHECK(ddp(2, both, setting, 3).values == expected.values);
  setting.data = texts(16);
  setting.steps = 2;
  auto const fails = [&](char const* printed, auto const& other) {
    launch::Options options;
    options.threads = 2;
    auto const run = [&] {
      launch::run(options, [&](launch::World& world) {
        train_with(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, world.rank == 1 ? other : both,
                   setting);
        return 0;
      });
    };
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(printed), CollectiveMismatch);
  };
  auto changed = both;
  changed.first.momentum = 0.75;
  fails("rank 1 has optimizer: first momentum = 0.75, but rank 0 has optimizer: first momentum = 0.95", changed);
  changed = both;
  changed.second.beta2 = 0.95;
  fails("rank 1 has optimizer: second beta2 = 0.95, but rank 0", changed);
  changed.second = both.second;
  changed.second.learning_rate = 2e-3;
  fails("rank 1 has optimizer: rate of ", changed);
  fails("rank 1 has optimizer: number of the optimizer of ",
        optim::Partitioned{both.first, both.second,
                           Rule([](std::string_view, std::span<Index const> shape) { return shape.size() == 2; })});
}

TEST_CASE("ranks started with other settings are refused before they diverge, and equal ones pass") {
  Setting setting;
  setting.data = texts(16);
  setting.steps = 2;
  auto const fails = [&](char const* printed, auto change) {
    launch::Options options;
    options.threads = 2;
    auto const run = [&] {
      launch::run(options, [&](launch::World& world) {
        auto mine = setting;
        optim::AdamW optimizer;
        if (world.rank == 1) change(mine, optimizer);
        train_with(parallel::DistributedDataParallel{comm::connect(world), 4096, 1}, optimizer, mine);
        return 0;
      });
    };
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(printed), CollectiveMismatch);
  };
  fails("rank 1 has optimizer: beta1 = 0.75, but rank 0 has optimizer: beta1 = 0.9",
        [](Setting&, optim::AdamW& optimizer) { optimizer.beta1 = 0.75; });
  fails("rank 1 has optimizer: decay of ",
        [](Setting&, optim::AdamW& optimizer) { optimizer.decays = optim::DecayRule::matrices; });
  fails("rank 1 has optimizer: rate of ", [](Setting&, optim::AdamW& optimizer) {
    optimizer.rates = [](std::string_view, std::span<Index const>) { return 0.5; };
  });
  fails("rank 1 has batch size = 4, but rank 0 has batch size = 8",
        [](Setting& mine, optim::AdamW&) { mine.accumulation = 2; });
  fails("rank 1 has tail = pad, but rank 0 has tail = exact",
        [](Setting& mine, optim::AdamW&) { mine.tail = data::Tail::pad; });
  fails("rank 1 has samples of the data = 15, but", [](Setting& mine, optim::AdamW&) { mine.data.pop_back(); });
  fails("rank 1 has fingerprint of the order of the data = ", [](Setting& mine, optim::AdamW&) { mine.order = 4; });
  fails("rank 1 has sample 6 of the data = ",
        [](Setting& mine, optim::AdamW&) { std::swap(mine.data[6], mine.data[7]); });
  fails("rank 1 has dropout = 0.200000, but rank 0 has dropout = 0.100000",
        [](Setting& mine, optim::AdamW&) { mine.dropout = 0.2; });
  setting.held_out = 9;
  fails("rank 1 has samples of the evaluation = 8, but", [](Setting& mine, optim::AdamW&) { mine.held_out = 8; });
  fails("rank 1 has fingerprint of the order of the evaluation = ",
        [](Setting& mine, optim::AdamW&) { mine.evaluation_order = 1; });
  fails("rank 1 has batch size of the evaluation = 3, but",
        [](Setting& mine, optim::AdamW&) { mine.evaluated_at_once = 3; });
}

TEST_CASE("ranks with another length of training, other rules or another judge are refused, by name") {
  train::Trace trace;
  auto const fails = [&](std::string const& printed, auto change) {
    auto const run = [&] {
      launch::Options ranks;
      ranks.threads = 2;
      launch::run(ranks, [&](launch::World& world) {
        FitOptions options{.epochs = 2, .schedule = {.kind = optim::Schedule::Kind::linear}};
        if (world.rank == 1) change(options);
        Trainer trainer(classifier(0), optim::AdamW{}, parallel::DistributedDataParallel{comm::connect(world), 4096, 1},
                        7);
        data::DataLoader loader(data::InMemoryDataset(texts(16)), data::ShuffledSampler{.seed = 3}, data::PadCollate{},
                                {.batch_size = 4}),
            again(data::InMemoryDataset(texts(8)), data::ShuffledSampler{}, data::PadCollate{}, {.batch_size = 4});
        trainer.fit(loader, train::Evaluation{again, train::Accuracy{&Text::label}}, options);
        return 0;
      });
    };
    CHECK_THROWS_WITH_AS(run(), doctest::Contains(("rank 1 has " + printed + ", but rank 0 has ").c_str()),
                         CollectiveMismatch);
  };
  fails("epochs = 3", [](FitOptions& mine) { mine.epochs = 3; });
  fails("largest number of steps = 2", [](FitOptions& mine) { mine.max_steps = 2; });
  fails("batches in a step = 2", [](FitOptions& mine) { mine.accumulation = 2; });
  fails("largest gradient norm = 0.5", [](FitOptions& mine) { mine.clip_norm = 0.5; });
  fails("steps between checks of replicas = 2", [](FitOptions& mine) { mine.check_replicas_every = 2; });
  fails("epochs between evaluations = 2", [](FitOptions& mine) { mine.evaluate_every_epochs = 2; });
  fails("steps between evaluations = 2", [](FitOptions& mine) { mine.evaluate_every_steps = 2; });
  fails("patience = 1", [](FitOptions& mine) { mine.patience = 1; });
  fails("patience of the plateau = 1", [](FitOptions& mine) { mine.plateau.patience = 1; });
  fails("factor of the plateau = 0.5", [](FitOptions& mine) { mine.plateau.factor = 0.5; });
  fails("least factor of the plateau = 0.25", [](FitOptions& mine) { mine.plateau.min_factor = 0.25; });
  fails("timed products = 1", [](FitOptions& mine) { mine.autotune_gemm = true; });
  fails("dry run = 1", [](FitOptions& mine) { mine.dry_run = true; });
  fails("trace = 1", [&](FitOptions& mine) { mine.trace = &trace; });
  fails("measure of the best evaluation = accuracy", [](FitOptions& mine) { mine.best_by = "accuracy"; });
  fails("steps of warm-up = 1", [](FitOptions& mine) { mine.schedule.warmup_steps = 1; });
  fails("steps of the schedule = 9", [](FitOptions& mine) { mine.schedule.total_steps = 9; });
  fails("kind of schedule = 1",
        [](FitOptions& mine) { mine.schedule.kind = static_cast<decltype(mine.schedule.kind)>(1); });
  fails("least factor of the schedule = 0.5", [](FitOptions& mine) { mine.schedule.min_factor = 0.5; });
  fails("schedule has a rule = 1", [](FitOptions& mine) { mine.schedule.rule = [](Index, Index) { return 1.0; }; });
}

TEST_CASE("replicas that diverge during a run end it at the next check, by name") {
  struct Fault : train::Observer {
    std::function<void()> inject;
    void step(train::StepReport const& report) override {
      if (report.step == 3) inject();
    }
  };
  launch::Options options;
  options.threads = 2;
  auto const run = [&] {
    launch::run(options, [&](launch::World& world) {
      Trainer trainer(classifier(0), optim::AdamW{}, parallel::DistributedDataParallel{comm::connect(world), 4096, 1},
                      7);
      data::DataLoader loader(data::InMemoryDataset(texts(16)), data::ShuffledSampler{.seed = 3}, data::PadCollate{},
                              {.batch_size = 8});
      Fault fault;
      fault.inject = [&] { const_cast<float&>(trainer.values()[0]) += world.rank == 1 ? 0.5f : 0.0f; };
      trainer.fit(loader, train::NoEvaluation{}, {.epochs = 10, .check_replicas_every = 2, .observers = {&fault}});
      return 0;
    });
  };
  CHECK_THROWS_WITH_AS(run(), doctest::Contains("after step 4 the parameter \""), CollectiveMismatch);
}
