// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/mean_squared_error.hpp>

#include <doctest/doctest.h>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::check_model;
using lockstep_test::TokenBatch;
using lockstep_test::Trial;

namespace {

struct Column {
  TensorView<float const, 3, HostSpace> values;  // [rows, length, width]
};

struct Model {
  nn::Parameter prediction;
  std::vector<float> target;
  int uses;
  double factor;
  Model(TokenBatch const& batch, Index width, int times = 1, double by = 1)
      : prediction{{batch.rows * batch.length, width}, nn::Initializer::normal(1)}, uses(times), factor(by) {
    for (Index i = 0; i < prediction.size(); ++i) target.push_back(static_cast<float>(i % 7) / 4 - 1);
  }
  void visit(auto&& each) { each("prediction", prediction); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::Sequence<typename Context::Scalar, HostSpace> const x{lockstep_test::learned(context, prediction),
                                                              batch.layout()};
    Column const column{{target.data(), {batch.rows, batch.length, x.width()}}};
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use) loss += nn::mean_squared_error(context, x, column, {.factor = factor});
    return loss;
  }
};

TokenBatch const batch({4, 0, 1, 2}, 4, 11);

}  // namespace

TEST_CASE("mean_squared_error: gradients, used once and twice, with a factor") {
  for (int uses : {1, 2})
    for (double factor : {1.0, 0.3}) {
      auto const result = check_model(Model(batch, 5, uses, factor), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
}

TEST_CASE("mean_squared_error: the weight is the number of elements, padding left out; the same in evaluation") {
  Trial<Model, double> trial(Model(batch, 5));
  std::fill(trial.values.begin(), trial.values.end(), 0.0);
  auto const loss = trial.step(batch);
  double expected = 0;
  for (Index i = 0; i < 16 * 5; ++i)
    if (batch.layout().is_token(i / 5)) expected += std::pow(trial.model.target[static_cast<std::size_t>(i)], 2);
  CHECK(loss.weight == 7 * 5);
  CHECK(loss.sum == doctest::Approx(expected));
  CHECK(trial.evaluate(batch).sum == loss.sum);
}

TEST_CASE("mean_squared_error: one vector per row, one number per row, integers as targets") {
  TokenBatch const rows({1, 1, 1}, 1, 11);
  Trial<Model, float> trial(Model(rows, 1));
  trial.values[0] = 2, trial.values[1] = 0, trial.values[2] = -1;
  auto& context = trial.context();
  context.begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<int> const target{1, 2, 3};
  auto const x = lockstep_test::learned(context, trial.model.prediction);
  auto const loss = nn::mean_squared_error(context, x, TensorView<int const, 1, HostSpace>(target.data(), {3}));
  CHECK(loss.sum == 1 + 4 + 16);
  CHECK(loss.weight == 3);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::mean_squared_error(context, x, TensorView<int const, 1, HostSpace>(target.data(), {2}))),
      doctest::Contains("the prediction is [3, 1] and the target [2]"), ShapeError);
}

TEST_CASE("mean_squared_error: no rows give nothing") {
  TokenBatch const none({}, 4, 11);
  Trial<Model, float> trial(Model(none, 5));
  auto const loss = trial.step(none);
  CHECK(loss.sum == 0);
  CHECK(loss.weight == 0);
}
