// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/random/stochastic_depth.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "dropping_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

using Model = lockstep_test::DroppingModel<nn::StochasticDepth>;
TokenBatch const batch({5, 0, 1, 9, 3}, 9, 11);
TokenBatch const many(std::vector<std::int32_t>(60, 9), 9, 11);

/// Returns the factors of the samples at these positions, as images of three places or as sequences of three tokens.
std::vector<float> factors(nn::StochasticDepth const& depth, std::vector<Index> const& positions, bool sequences,
                           std::uint64_t key = 3) {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, key);
  auto const rows = static_cast<Index>(positions.size());
  TensorView<Index const, 1, HostSpace> const places(positions.data(), {rows});
  auto const x = context.variable<3>({rows, 3, 4});
  std::fill_n(x.value.data, x.value.size(), 1.0f);
  auto const layout = nn::SequenceLayout<HostSpace>::padded(3, {}, places);
  auto const y = sequences ? depth.forward(context, nn::Sequence<float, HostSpace>{x.as_rows(), layout}).tokens.value
                           : depth.forward(context, x, places).as_rows().value;
  std::vector<float> out;
  for (Index row = 0; row < rows; ++row) {
    auto const* const first = y.data + 12 * row;
    CHECK(std::count(first, first + 12, *first) == 12);
    out.push_back(*first);
  }
  return out;
}

}  // namespace

TEST_CASE("stochastic depth: gradients, for sequences and vectors") {
  for (double p : {0.0, 0.4})
    for (bool vectors : {false, true}) {
      auto const result = check_model(Model(batch, p, vectors), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE_TEMPLATE("stochastic depth: bits do not depend on threads", Scalar, float, double) {
  Trial<Model, Scalar> one(Model(many, 0.5), 1), more(Model(many, 0.5), 3);
  CHECK(one.step(many).sum == more.step(many).sum);
  CHECK(one.gradients == more.gradients);
}

TEST_CASE("stochastic depth: the identity in evaluation and at probability 0, without a copy") {
  Trial<Model, double> some(Model(batch, 0.4)), none(Model(batch, 0));
  CHECK(some.evaluate(batch).sum == none.step(batch).sum);
  auto& context = some.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(context, some.model.x);
  nn::Sequence<double, HostSpace> const sequences{x, batch.layout()};
  CHECK(some.model.layer.forward(context, sequences).tokens.value.data == x.value.data);
}

TEST_CASE("stochastic depth: a sample is kept as a whole, in any batch, as an image or as a sequence") {
  nn::StochasticDepth const depth(0.5);
  std::vector<Index> positions(200);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<Index>(7 * i);
  auto const all = factors(depth, positions, false);
  CHECK(all == factors(depth, positions, true));
  CHECK(all != factors(depth, positions, false, 4));
  for (float factor : all) CHECK((factor == 0 || factor == 2));
  // 200 draws: the number of kept ones has a deviation of sqrt(200 / 4) = 7.1; 5 of these.
  CHECK(std::abs(static_cast<double>(std::count(all.begin(), all.end(), 2.0f)) - 100) < 5 * 7.1);
  CHECK(factors(depth, {positions.begin() + 50, positions.end()}, false) ==
        std::vector<float>(all.begin() + 50, all.end()));
}

TEST_CASE("stochastic depth: every application draws again") {
  Trial<Model, double> trial(Model(many, 0.5));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = lockstep_test::learned(context, trial.model.x);
  nn::Sequence<double, HostSpace> const in{x, many.layout()};
  auto const first = trial.model.layer.forward(context, in).tokens.value;
  auto const second = trial.model.layer.forward(context, in).tokens.value;
  CHECK(!std::equal(first.data, first.data + first.size(), second.data));
}

TEST_CASE("stochastic depth: invalid probabilities, and samples without positions, are refused") {
  CHECK_THROWS_WITH_AS(nn::StochasticDepth(1), "StochasticDepth: probability 1; it must be in [0, 1); 0 turns it off",
                       ConfigError);
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_step();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = context.variable<2>({4, 3});
  nn::Sequence<float, HostSpace> const sequences{x, nn::SequenceLayout<HostSpace>::vectors(4)};
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::StochasticDepth(0.5).forward(context, sequences)),
                       "StochasticDepth: the input has 4 samples and there are 0 positions; each sample needs one: "
                       "batch.positions()",
                       ShapeError);
  std::vector<Index> const positions{1, 2, 3};
  TensorView<Index const, 1, HostSpace> const places(positions.data(), {3});
  CHECK_THROWS_AS(static_cast<void>(nn::StochasticDepth(0.5).forward(context, x, places)), ShapeError);
}
