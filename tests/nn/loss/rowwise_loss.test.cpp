// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/rowwise_loss.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <lockstep/core/bfloat16.hpp>

#include "loss_check.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {
using Outputs = std::span<double const>;
using Slopes = std::span<double>;

// -log softmax of the first number of a row, over all numbers of the row. Counts each row `weight` times.
struct First {
  double weight = 1;
  nn::Loss<HostSpace> operator()(Index row, Outputs x, Slopes slopes) const {
    if (x.empty() || row == skipped) return {0, 0};
    double sum = 0;
    for (auto v : x) sum += std::exp(v);
    for (std::size_t i = 0; i < x.size(); ++i) slopes[i] = std::exp(x[i]) / sum - (i == 0 ? 1 : 0);
    return {std::log(sum) - x[0], weight};
  }
  Index skipped = -1;
};

template <class Rule>
struct Model {
  nn::Parameter prediction;
  Rule rule;
  double factor = 1;
  int uses = 1;
  bool as_rows = false;
  void visit(auto&& each) { each("prediction", prediction); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    auto const x = learned(context, prediction);
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use)
      loss += as_rows ? nn::rowwise_loss(context, rule, x.reshape(Extents<3>{batch.rows, batch.length, x.extent(1)}),
                                         factor)
                      : nn::rowwise_loss(context, rule, nn::SequenceOf<Context>{x, batch.layout()}, factor);
    return loss;
  }
};
template <class Rule>
Model<Rule> model(TokenBatch const& batch, Rule rule, double factor = 1, int uses = 1, bool as_rows = false) {
  return {{{batch.rows * batch.length, 3}, nn::Initializer::normal(1)}, rule, factor, uses, as_rows};
}

TokenBatch const batch({4, 0, 1, 2}, 4, 11);
}  // namespace

TEST_CASE("rowwise_loss: gradients, with a factor, two uses and a row that does not count") {
  for (bool as_rows : {false, true})
    for (int uses : {1, 2})
      for (double factor : {1.0, 0.3}) {
        auto const result = check_model(model(batch, First{1, 2}, factor, uses, as_rows), batch);
        CAPTURE(result.where);
        CHECK(result.ok());
      }
}

TEST_CASE("rowwise_loss: sum and weight are those of the rule, without padding") {
  Trial<Model<First>, double> trial(model(batch, First{2.5}));
  auto const loss = trial.step(batch);
  double expected = 0;
  for (Index row : {0, 2, 3}) {
    auto const first = static_cast<std::size_t>(row * 4 * 3);
    double sum = 0;
    for (Index i = 0; i < batch.layout().tokens(row) * 3; ++i)
      sum += std::exp(trial.values[first + static_cast<std::size_t>(i)]);
    expected += std::log(sum) - trial.values[first];
  }
  CHECK(loss.sum == doctest::Approx(expected).epsilon(1e-14));
  CHECK(loss.weight == 7.5);  // the row without tokens returned {0, 0}
  CHECK(trial.evaluate(batch).sum == loss.sum);
  Trial<Model<First>, double> half(model(batch, First{2.5}, 0.5));
  CHECK(half.step(batch).sum == loss.sum / 2);
  CHECK(half.step(batch).weight == 7.5);
}

TEST_CASE("rowwise_loss: padding has the gradient zero, also in memory that an earlier step has used") {
  Trial<Model<First>, double> trial(model(batch, First{}));
  static_cast<void>(trial.step(batch));
  auto const first = trial.gradients;
  for (int step = 0; step < 3; ++step) {
    for (auto& value : trial.values) value += 1;  // other slopes in this step than in the last one
    static_cast<void>(trial.step(batch));
    for (auto& value : trial.values) value -= 1;
    static_cast<void>(trial.step(batch));
  }
  CHECK(trial.gradients == first);
  for (Index slot = 0; slot < 16; ++slot)
    for (Index c = 0; c < 3; ++c)
      if (!batch.layout().is_token(slot)) CHECK(trial.gradients[static_cast<std::size_t>(slot * 3 + c)] == 0);
}

TEST_CASE("rowwise_loss: equal bits for any number of threads") {
  TokenBatch const large(std::vector<std::int32_t>(700, 2), 3, 11);
  Trial<Model<First>, float> one(model(large, First{}), 1), three(model(large, First{}), 3);
  CHECK(one.step(large).sum == three.step(large).sum);
  CHECK(one.gradients == three.gradients);
}

TEST_CASE("rowwise_loss: 16-bit activations are read exactly, and slopes are rounded once") {
  Trial<Model<First>, bfloat16> half(model(batch, First{}, 0.7));
  Trial<Model<First>, double> exact(model(batch, First{}, 0.7));
  for (std::size_t i = 0; i < half.values.size(); ++i) {
    half.values[i] = static_cast<float>(bfloat16(half.values[i]));
    exact.values[i] = static_cast<double>(half.values[i]);
  }
  CHECK(half.step(batch).sum == exact.step(batch).sum);
  for (std::size_t i = 0; i < half.values.size(); ++i)
    CHECK(half.gradients[i] == static_cast<float>(bfloat16(static_cast<float>(exact.gradients[i]))));
}

TEST_CASE("rowwise_loss: a number counts with weight 1, and a batch may be empty") {
  auto square = [](Index, Outputs x, Slopes slopes) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * x[i] / 2, slopes[i] = x[i];
    return sum;
  };
  Trial<Model<decltype(square)>, double> trial(model(batch, square));
  CHECK(trial.step(batch).weight == 4);
  TokenBatch const none({}, 4, 11);
  for (bool as_rows : {false, true}) {
    Trial<Model<decltype(square)>, float> empty(model(none, square, 1, 1, as_rows));
    auto const nothing = empty.step(none);
    CHECK(nothing.sum == 0);
    CHECK(nothing.weight == 0);
  }
}

TEST_CASE("rowwise_loss: a rule that makes NaN or infinity of finite outputs is refused with the row") {
  auto const message = [](auto rule) {
    Trial<Model<decltype(rule)>, float> trial(model(batch, rule));
    try {
      static_cast<void>(trial.step(batch));
    } catch (RowError const& error) {
      CHECK(error.row() == 2);
      return std::string(error.what());
    }
    return std::string();
  };
  auto const loss = message([](Index row, Outputs, Slopes) { return row == 2 ? std::log(0.0) : 1.0; });
  CHECK(loss.starts_with("rowwise_loss: the loss of row 2 of the batch is -inf, and its outputs are finite: ["));
  auto const slope = message([](Index row, Outputs, Slopes slopes) {
    if (row == 2) slopes[1] = std::nan("");
    return 1.0;
  });
  CHECK(slope.starts_with("rowwise_loss: the slope 1 of row 2 of the batch is nan, and its outputs are finite: ["));
}

TEST_CASE("rowwise_loss: NaN outputs are left to the trainer") {
  Trial<Model<First>, float> trial(model(batch, First{}));
  trial.values[0] = std::nanf("");
  CHECK(std::isnan(trial.step(batch).sum));
}
