// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/pooling/pooling.hpp>

#include <doctest/doctest.h>

#include <algorithm>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

enum class Pool { mean, sum, max, first, last };

struct Model {
  nn::Parameter x;
  int uses;
  Pool pool;
  Model(TokenBatch const& batch, int times, Pool by = Pool::mean)
      : x{{batch.rows * batch.length, 10}, nn::Initializer::normal(1)}, uses(times), pool(by) {}
  void visit(auto&& each) { each("x", x); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const in{lockstep_test::learned(context, x), batch.layout()};
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use)
      loss += lockstep_test::irregular_loss(context, pool == Pool::mean    ? nn::mean_pool(context, in)
                                                     : pool == Pool::sum   ? nn::sum_pool(context, in)
                                                     : pool == Pool::max   ? nn::max_pool(context, in)
                                                     : pool == Pool::first ? nn::first_token(context, in)
                                                                           : nn::last_token(context, in));
    return loss;
  }
};

}  // namespace

TEST_CASE("mean_pool, sum_pool, max_pool, first_token and last_token: gradients, used once and twice") {
  TokenBatch const batch({5, 0, 1, 9, 3}, 9, 11);
  for (auto pool : {Pool::mean, Pool::sum, Pool::max, Pool::first, Pool::last})
    for (int uses : {1, 2}) {
      auto const result = check_model(Model(batch, uses, pool), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("first_token and last_token: one row per sequence, zeros without tokens; padded and ragged") {
  TokenBatch const batch({0, 2, 1}, 3, 11);
  std::vector<Index> const offsets{0, 0, 2, 3};
  auto const ragged = nn::SequenceLayout<HostSpace>::ragged(3, 2, {offsets.data(), {4}}, batch.places());
  Trial<Model, double> trial(Model(batch, 1));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(context, trial.model.x);
  auto const padded = nn::first_token(context, nn::Sequence<double, HostSpace>{x, batch.layout()});
  auto const packed = nn::first_token(context, nn::Sequence<double, HostSpace>{x, ragged});
  auto const padded_last = nn::last_token(context, nn::Sequence<double, HostSpace>{x, batch.layout()});
  auto const packed_last = nn::last_token(context, nn::Sequence<double, HostSpace>{x, ragged});
  REQUIRE(padded.value.extent == Extents<2>{3, 10});
  for (Index c = 0; c < 10; ++c) {
    CHECK(padded.value(0, c) == 0);
    CHECK(padded.value(1, c) == x.value(3, c));
    CHECK(padded.value(2, c) == x.value(6, c));
    CHECK(packed.value(0, c) == 0);
    CHECK(packed.value(1, c) == x.value(0, c));
    CHECK(packed.value(2, c) == x.value(2, c));
    CHECK(padded_last.value(0, c) == 0);
    CHECK(padded_last.value(1, c) == x.value(4, c));
    CHECK(padded_last.value(2, c) == x.value(6, c));
    CHECK(packed_last.value(1, c) == x.value(1, c));
    CHECK(packed_last.value(2, c) == x.value(2, c));
  }
}

TEST_CASE("mean_pool and sum_pool: one row per sequence, zeros without tokens") {
  TokenBatch const batch({0, 2}, 3, 11);
  Trial<Model, double> trial(Model(batch, 1));
  trial.step(batch);
  nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(trial.context(), trial.model.x);
  auto const y = nn::mean_pool(trial.context(), nn::Sequence<double, HostSpace>{x, batch.layout()});
  auto const sum = nn::sum_pool(trial.context(), nn::Sequence<double, HostSpace>{x, batch.layout()});
  REQUIRE(y.value.extent == Extents<2>{2, 10});
  REQUIRE(sum.value.extent == Extents<2>{2, 10});
  for (Index c = 0; c < 10; ++c) {
    CHECK(y.value(0, c) == 0);
    CHECK(y.value(1, c) == (x.value(3, c) + x.value(4, c)) / 2);
    CHECK(sum.value(0, c) == 0);
    CHECK(sum.value(1, c) == x.value(3, c) + x.value(4, c));
  }
}

TEST_CASE("max_pool: the largest value per channel and sequence, zeros without tokens; padded and ragged") {
  TokenBatch const batch({0, 2, 1}, 3, 11);
  std::vector<Index> const offsets{0, 0, 2, 3};
  auto const ragged = nn::SequenceLayout<HostSpace>::ragged(3, 2, {offsets.data(), {4}}, batch.places());
  Trial<Model, double> trial(Model(batch, 1));
  auto& context = trial.context();
  for (auto mode : {nn::Mode::evaluation, nn::Mode::training}) {
    nn::Pass(context).begin_micro_batch(mode, 1);
    auto const x = lockstep_test::learned(context, trial.model.x);
    auto const padded = nn::max_pool(context, nn::Sequence<double, HostSpace>{x, batch.layout()});
    auto const packed = nn::max_pool(context, nn::Sequence<double, HostSpace>{x, ragged});
    REQUIRE(padded.value.extent == Extents<2>{3, 10});
    for (Index c = 0; c < 10; ++c) {
      CHECK(padded.value(0, c) == 0);
      CHECK(padded.value(1, c) == std::max(x.value(3, c), x.value(4, c)));
      CHECK(padded.value(2, c) == x.value(6, c));
      CHECK(packed.value(0, c) == 0);
      CHECK(packed.value(1, c) == std::max(x.value(0, c), x.value(1, c)));
      CHECK(packed.value(2, c) == x.value(2, c));
    }
  }
}

TEST_CASE("mean_pool, sum_pool, max_pool, first_token and last_token: batches without rows or slots") {
  for (auto const& batch : {TokenBatch({}, 9, 11), TokenBatch({0, 0}, 0, 11)})
    for (auto pool : {Pool::mean, Pool::sum, Pool::max, Pool::first, Pool::last}) {
      Trial<Model, float> trial(Model(batch, 1, pool));
      CHECK(trial.step(batch).sum == 0);
    }
}
