// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/random/dropout.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/random/standard_normal.hpp>

#include "dropping_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

using Model = lockstep_test::DroppingModel<nn::Dropout>;
TokenBatch const batch({5, 0, 1, 9, 3}, 9, 11);

}  // namespace

TEST_CASE("dropout layer: gradients, with and without padding, with and without dropping") {
  for (double p : {0.0, 0.4})
    for (bool vectors : {false, true}) {
      auto const result = check_model(Model(batch, p, vectors), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("dropout layer: the identity in evaluation and at probability 0, without a copy") {
  Trial<Model, double> some(Model(batch, 0.4)), none(Model(batch, 0));
  CHECK(some.evaluate(batch).sum == none.step(batch).sum);
  auto& context = some.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const x = lockstep_test::learned(context, some.model.x);
  nn::Sequence<double, HostSpace> const sequences{x, batch.layout()};
  CHECK(some.model.layer.forward(context, sequences).tokens.value.data == x.value.data);
}

TEST_CASE("dropout layer: an image is a sample whose places are its elements") {
  nn::Dropout const dropout(0.5);
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  std::vector<Index> const positions{4, 9};
  TensorView<Index const, 1, HostSpace> const places(positions.data(), {2});
  auto const kept = [&](auto const& of) {
    nn::Pass(context).begin_step();
    nn::Pass(context).begin_micro_batch(nn::Mode::training, 3);
    auto const x = of();
    std::fill_n(x.value.data, x.value.size(), 1.0f);
    auto const y = dropout.forward(context, x, places).value;
    return std::vector<float>(y.data, y.data + y.size());
  };
  auto const image = kept([&] { return context.variable<4>({2, 3, 4, 5}); });
  CHECK(image == kept([&] { return context.variable<2>({2, 60}); }));
  CHECK(std::count(image.begin(), image.end(), 0.0f) > 30);
  CHECK(std::count(image.begin(), image.end(), 2.0f) > 30);
  CHECK_THROWS_WITH_AS(kept([&] {
                         return context.variable<4>({3, 3, 4, 5});
                       }),
                       "Dropout: the input is [3, 3, 4, 5] and there are 2 positions; each row needs one: "
                       "batch.positions()",
                       ShapeError);
}

TEST_CASE(
    "dropout layer: a value becomes zero with its probability, and is otherwise scaled so that the mean is unchanged") {
  TokenBatch const many(std::vector<std::int32_t>(60, 9), 9, 11);
  Trial<Model, double> trial(Model(many, 0.25));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const x = lockstep_test::learned(context, trial.model.x);
  auto const y = trial.model.layer.forward(context, nn::Sequence<double, HostSpace>{x, many.layout()}).tokens.value;
  Index zeros = 0;
  for (Index i = 0; i < y.size(); ++i) {
    zeros += y.data[i] == 0;
    CHECK((y.data[i] == 0 || y.data[i] == doctest::Approx(x.value.data[i] / 0.75).epsilon(1e-6)));
  }
  // 5400 values: the fraction of zeros has a deviation of sqrt(0.25 * 0.75 / 5400) = 0.006; 5 of these.
  CHECK(std::abs(static_cast<double>(zeros) / static_cast<double>(y.size()) - 0.25) < 5 * 0.006);
}

TEST_CASE("dropout layer: every application and every step has its own mask") {
  Trial<Model, double> trial(Model(batch, 0.4));
  auto& context = trial.context();
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const first = trial.model.layer.mask(context), second = trial.model.layer.mask(context);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 2);
  auto const next = trial.model.layer.mask(context);
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  CHECK(trial.model.layer.mask(context).key == first.key);
  CHECK(first.key != second.key);
  CHECK(first.key != next.key);
}

TEST_CASE("dropout layer: a layer with probability 0 does not change other layers' masks") {
  Trial<Model, double> trial(Model(batch, 0.4)), none(Model(batch, 0));
  auto const second_key = [](auto& t, nn::Dropout const& first) {
    nn::Pass(t.context()).begin_micro_batch(nn::Mode::training, 1);
    static_cast<void>(first.mask(t.context()));
    return t.model.layer.mask(t.context()).key;
  };
  CHECK(second_key(trial, trial.model.layer) == second_key(trial, none.model.layer));
}

TEST_CASE("dropout layer: a sequence without positions, its random key, is refused if one is needed") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  std::vector<float> const x(12, 1.f);
  nn::Sequence<float, HostSpace> const in{context.input(TensorView<float const, 2, HostSpace>{x.data(), {3, 4}}),
                                          nn::SequenceLayout<HostSpace>::vectors(3)};
  auto const* const sentence = "3 sequences and there are 0 positions; each needs one: batch.positions()";
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::Dropout(0.5).forward(context, in)), doctest::Contains(sentence),
                       ShapeError);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::standard_normal_like(context, in)), doctest::Contains(sentence),
                       ShapeError);
  CHECK(nn::Dropout(0).forward(context, in).tokens.value.data == in.tokens.value.data);
}
