// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/gradients/row_exchange.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <span>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/core/mix.hpp>
#include <lockstep/launch/run/run.hpp>
#include <lockstep/nn/module/initialize.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/partitioned.hpp>
#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/policy/data_parallel.hpp>
#include <lockstep/parallel/policy/distributed_data_parallel.hpp>
#include <lockstep/parallel/policy/reproducible.hpp>
#include <lockstep/parallel/policy/single_device.hpp>

#include "parallel/table_model.hpp"

using namespace lockstep;
using table_model::Batch;

namespace {

/// steps[s][m][k]: the batch of shard k in micro-batch m of step s.
using Steps = std::vector<std::vector<std::vector<Batch>>>;

/// A user's own rule, without code for rows.
struct SignDescent {
  static constexpr int states = 0;
  double learning_rate = 1e-3;
  template <class Scalar>
  void step(memory::Stream<HostSpace>, optim::Slice<Scalar, HostSpace> slice,
            optim::StepScalars<HostSpace> const* scalars) const {
    auto const rate = static_cast<Scalar>(scalars->learning_rate);
    for (Index i = 0; i < slice.count; ++i)
      slice.values[i] -= slice.gradients[i] > 0 ? rate : slice.gradients[i] < 0 ? -rate : Scalar(0);
  }
};

struct Setting {
  Index rows;
  nn::GradientForm form;
  double clip_norm = 0;
  int threads = 1;
};

/// Results of a policy's session for the steps: parameters and losses.
template <class Policy, class Optimizer>
std::vector<double> run(Policy policy, Optimizer const& optimizer, Setting const& setting, Steps const& steps) {
  table_model::Model model(setting.rows, setting.form);
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> values(static_cast<std::size_t>(layout.size()), 0.0f);
  nn::initialize(layout, 1, values.data());
  typename Policy::template Session<table_model::Model, Optimizer> session(policy, model, layout, values);
  std::vector<double> out;
  Index number = 0;
  for (auto const& step : steps) {
    for (std::size_t m = 0; m < step.size(); ++m)
      session.micro_step(std::span<Batch const>(step[m]).subspan(static_cast<std::size_t>(policy.first_shard()),
                                                                 static_cast<std::size_t>(policy.shards())),
                         {.key = 1, .first = m == 0, .last = m + 1 == step.size()});
    out.push_back(session.update(optimizer, {++number, 0.1, setting.clip_norm}).sum);
  }
  out.insert(out.end(), session.values().begin(), session.values().end());
  return out;
}

template <class Optimizer>
std::vector<double> ddp(int ranks, Optimizer const& optimizer, Setting const& setting, Steps const& steps,
                        int shards = 0, bool shard_optimizer = false,
                        parallel::WireFormat wire = parallel::WireFormat::float32) {
  std::vector<std::vector<double>> all(static_cast<std::size_t>(ranks));
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    parallel::DistributedDataParallel policy{comm::connect(world), 256, setting.threads, parallel::BufferPolicy::first,
                                             shard_optimizer,      wire};
    all[static_cast<std::size_t>(world.rank)] =
        run(parallel::Reproducible{std::move(policy), shards}, optimizer, setting, steps);
    return 0;
  });
  for (auto const& one : all) RC_ASSERT(one == all[0]);
  return all[0];
}

/// Row-sparse gradients give the bits of dense ones, under every policy.
template <class Optimizer>
void compare(Optimizer const& optimizer, Index rows, double clip_norm, int shards, Steps const& steps) {
  auto const dp = [&](nn::GradientForm form, int threads) {
    return run(parallel::DataParallel{.devices = shards, .threads = threads}, optimizer, {rows, form, clip_norm},
               steps);
  };
  auto const expected = dp(nn::GradientForm::dense, 1);
  RC_ASSERT(dp(nn::GradientForm::by_rows, 1) == expected);
  RC_ASSERT(dp(nn::GradientForm::by_rows, 2) == expected);
  RC_ASSERT(ddp(shards, optimizer, {rows, nn::GradientForm::by_rows, clip_norm}, steps) == expected);
  RC_ASSERT(ddp(shards, optimizer, {rows, nn::GradientForm::dense, clip_norm}, steps) == expected);
  if (shards == 1)
    RC_ASSERT(run(parallel::SingleDevice{.threads = 1}, optimizer, {rows, nn::GradientForm::by_rows, clip_norm},
                  steps) == expected);
  for (int n = 1; n < shards && shards != 3; n *= 2) {  // each computes several shards
    auto const all = [&](auto policy, nn::GradientForm form) {
      return run(parallel::Reproducible{policy, shards}, optimizer, {rows, form, clip_norm}, steps);
    };
    parallel::DataParallel const devices{.devices = n, .threads = 1};
    RC_ASSERT(all(devices, nn::GradientForm::by_rows) == expected);
    RC_ASSERT(all(devices, nn::GradientForm::dense) == expected);
    RC_ASSERT(ddp(n, optimizer, {rows, nn::GradientForm::by_rows, clip_norm}, steps, shards) == expected);
  }
}

/// Batches of few ids, often none, and sometimes with the whole table.
Steps draw_steps(Index rows, int shards) {
  auto const any = [](int from, int below) { return *rc::gen::resize(100, rc::gen::inRange(from, below)); };
  Steps steps(static_cast<std::size_t>(any(1, 5)));
  for (auto& step : steps) {
    step.resize(static_cast<std::size_t>(any(1, 4)), std::vector<Batch>(static_cast<std::size_t>(shards)));
    for (auto& micro : step)
      for (auto& batch : micro) {
        for (int k = any(-2, 7); k > 0; --k) batch.ids.push_back(any(0, static_cast<int>(rows)));
        batch.whole = any(0, 12) == 0;
      }
  }
  return steps;
}

/// Three steps of several micro-batches that touch rows all over a table, and sometimes all of it.
Steps steps_over(Index rows, int shards) {
  Steps steps(3);
  std::uint64_t draw = 0;
  auto const below = [&](Index n) { return static_cast<std::int32_t>(mix(draw++) % static_cast<std::uint64_t>(n)); };
  for (auto& step : steps) {
    step.resize(2, std::vector<Batch>(static_cast<std::size_t>(shards)));
    for (auto& micro : step)
      for (auto& batch : micro) {
        for (int k = below(9); k > 0; --k) batch.ids.push_back(below(rows));
        batch.whole = below(8) == 0;
      }
  }
  return steps;
}

/// Ranks with a sharded optimizer state end with the bits of ranks without.
template <class Optimizer>
void compare_sharded(Optimizer const& optimizer) {
  constexpr Index rows = 1700;  // 8500 elements: four ranks have some of each table
  for (int ranks : {1, 2, 3, 4})
    for (auto form : {nn::GradientForm::by_rows, nn::GradientForm::dense})
      for (double clip_norm : {0.0, 0.5}) {
        CAPTURE(ranks);
        CAPTURE(clip_norm);
        auto const steps = steps_over(rows, ranks);
        Setting const setting{rows, form, clip_norm};
        auto const whole = ddp(ranks, optimizer, setting, steps);
        CHECK(ddp(ranks, optimizer, setting, steps, 0, true) == whole);
        CHECK(ddp(ranks, optimizer, {rows, form, clip_norm, 2}, steps, 0, true) == whole);
      }
  auto const steps = steps_over(rows, 4);
  auto const whole = ddp(4, optimizer, {rows, nn::GradientForm::by_rows, 0.5}, steps);
  CHECK(ddp(2, optimizer, {rows, nn::GradientForm::by_rows, 0.5}, steps, 4, true) == whole);  // two shards of a rank
}

}  // namespace

TEST_CASE("a sharded optimizer gives the bits of a whole one, for tables and dense parameters, and any optimizer") {
  compare_sharded(optim::SGD{.momentum = 0.9, .weight_decay = 0.1});
  compare_sharded(optim::Adam{.weight_decay = 0.1, .decays = optim::DecayRule::matrices});
  compare_sharded(optim::AdamW{.weight_decay = 0.1, .untouched_rows = optim::UntouchedRows::skip});
  compare_sharded(SignDescent{});
}

TEST_CASE("an optimizer of whole parameters gives equal bits under any policy, and refuses to be sharded") {
  optim::LAMB const optimizer{.learning_rate = 0.01, .weight_decay = 0.1};
  constexpr Index rows = 65;
  for (int shards : {1, 2, 3, 4})
    for (double clip_norm : {0.0, 0.5}) compare(optimizer, rows, clip_norm, shards, steps_over(rows, shards));
  CHECK_THROWS_WITH_AS(
      static_cast<void>(ddp(2, optimizer, {rows, nn::GradientForm::by_rows, 0}, steps_over(rows, 2), 0, true)),
      doctest::Contains("shard_optimizer divides parameters between ranks, and the optimizer LAMB "
                        "needs whole ones; leave it out"),
      ConfigError);
}

TEST_CASE("two optimizers give equal bits under any policy; they are sharded unless one needs whole parameters") {
  constexpr Index rows = 65;
  auto const first = [](std::string_view name, std::span<Index const> shape) {
    return shape.size() == 2 && !name.starts_with("table");
  };
  auto const tables = [](std::string_view, std::span<Index const> shape) { return shape.size() == 2; };
  optim::Muon const muon{.learning_rate = 0.01};
  optim::AdamW const adamw{.weight_decay = 0.1, .untouched_rows = optim::UntouchedRows::skip};
  for (int shards : {1, 2, 4}) {
    auto const steps = steps_over(rows, shards);
    auto const both = [&](auto const& one, auto const& other, auto rule) {
      compare(optim::Partitioned{one, other, rule}, rows, 0.5, shards, steps);
    };
    both(muon, optim::SGD{.momentum = 0.9}, tables);
    both(muon, SignDescent{}, first);
  }
  optim::Partitioned const whole{muon, adamw, first};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(ddp(2, whole, {rows, nn::GradientForm::by_rows, 0}, steps_over(rows, 2), 0, true)),
      doctest::Contains("the optimizer Muon and AdamW needs whole ones; leave it out"), ConfigError);
  compare_sharded(optim::Partitioned{optim::SGD{.momentum = 0.9}, adamw, first});
}

TEST_CASE("on a 16-bit wire, too, for any number of ranks, row-sparse gradients have the bits of dense ones") {
  constexpr Index rows = 1700;
  optim::AdamW const optimizer{.weight_decay = 0.1};
  for (int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    auto const steps = steps_over(rows, ranks);
    auto const train = [&](nn::GradientForm form, bool shard_optimizer, parallel::WireFormat wire) {
      return ddp(ranks, optimizer, {rows, form, 0.5}, steps, 0, shard_optimizer, wire);
    };
    using enum nn::GradientForm;
    using enum parallel::WireFormat;
    auto const expected = train(dense, false, bfloat16);
    CHECK(expected != train(dense, false, float32));
    CHECK(train(by_rows, false, bfloat16) == expected);
    CHECK(train(dense, true, bfloat16) == expected);
    CHECK(train(by_rows, true, bfloat16) == expected);
  }
}

TEST_CASE("row-sparse gradients give the bits of dense ones, for any policy, optimizer and choice of rows") {
  CHECK(rc::check("rows", [] {
    auto const rows = static_cast<Index>(*rc::gen::element(1, 31, 32, 33, 63, 64, 65, 130));
    auto const shards = *rc::gen::inRange(1, 5);
    auto const steps = draw_steps(rows, shards);
    auto const clip_norm = *rc::gen::element(0.0, 0.5);
    switch (*rc::gen::inRange(0, 5)) {
      case 0:
        return compare(optim::SGD{}, rows, clip_norm, shards, steps);
      case 1:
        return compare(optim::SGD{.momentum = 0.9, .weight_decay = 0.1}, rows, clip_norm, shards, steps);
      case 2:
        return compare(optim::Adam{.weight_decay = 0.1}, rows, clip_norm, shards, steps);
      case 3:
        return compare(optim::AdamW{.weight_decay = 0.1}, rows, clip_norm, shards, steps);
      default:
        return compare(SignDescent{}, rows, clip_norm, shards, steps);
    }
  }));
}

TEST_CASE("only rows that some rank touched are sent, and all ranks end with the sums and the union") {
  constexpr Index rows = 70, width = 3;
  constexpr int ranks = 3;
  std::vector<std::vector<float>> gradients(ranks, std::vector<float>(16 + rows * width, -7.0f));
  std::vector<std::vector<std::uint64_t>> bits(ranks, std::vector<std::uint64_t>(2, 0));
  std::vector<std::size_t> sent(ranks);
  launch::Options options;
  options.threads = ranks;
  launch::run(options, [&](launch::World& world) {
    auto communicator = comm::connect(world);
    auto const rank = static_cast<std::size_t>(world.rank);
    kernel::TouchedRows const table{16, rows, width, bits[rank].data()};
    auto const touch = [&](Index row, float value) {
      table.insert(row);
      std::fill_n(gradients[rank].data() + 16 + row * width, width, value);
    };
    touch(65, 1);                                       // all ranks
    if (rank == 1) touch(0, 10), touch(69, 20);         // one of them
    if (rank != 1) touch(2, static_cast<float>(rank));  // two of them
    parallel::RowExchange exchange(std::span(&table, 1), ranks);
    exchange.sum(communicator, gradients[rank].data());
    std::vector<parallel::BucketTimes> times;
    exchange.add_times(times);
    sent[rank] = times.at(0).bytes;
    CHECK(times[0].table_bytes == rows * width * sizeof(float));
    return 0;
  });
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    CAPTURE(rank);
    CHECK(sent[rank] == 4 * width * sizeof(float));
    kernel::TouchedRows const table{16, rows, width, bits[rank].data()};
    CHECK(table.count() == 4);
    auto const row_is = [&](Index row, float value) {
      CHECK(table.contains(row));
      for (Index j = 0; j < width; ++j) CHECK(gradients[rank][static_cast<std::size_t>(16 + row * width + j)] == value);
    };
    row_is(0, 10), row_is(2, 2), row_is(65, 3), row_is(69, 20);
    CHECK(gradients[rank][0] == -7);  // before the table
  }
}
