// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

#include "nn/sequence_model.hpp"

/// Properties of an elementwise loss with its targets, apply(context, prediction, column, factor).
namespace loss_check {
using namespace lockstep_test;
namespace nn = lockstep::nn;

struct Column {
  TensorView<float const, 3, HostSpace> values;  // [rows, length, width]
};

/// Targets in [0, 1], some at its ends.
template <class Apply>
struct Model {
  nn::Parameter prediction;
  std::vector<float> target;
  Apply apply;
  int uses;
  double factor;
  Model(TokenBatch const& batch, Index width, Apply a, int times = 1, double by = 1)
      : prediction{{batch.rows * batch.length, width}, nn::Initializer::normal(1)}, apply(a), uses(times), factor(by) {
    for (Index i = 0; i < prediction.size(); ++i) target.push_back(static_cast<float>(i % 5) / 4);
  }
  void visit(auto&& each) { each("prediction", prediction); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, TokenBatch const& batch) const {
    nn::SequenceOf<Context> const x{learned(context, prediction), batch.layout()};
    Column const column{{target.data(), {batch.rows, batch.length, x.width()}}};
    nn::Loss<HostSpace> loss;
    for (int use = 0; use < uses; ++use) loss += apply(context, x, column, factor);
    return loss;
  }
};

inline TokenBatch const batch({4, 0, 1, 2}, 4, 11);

/// `of(x, t)`, or of(x, t, column), is the loss's definition; gradients are checked with one and two uses, and with a
/// factor.
template <class Apply, class Definition>
void check(Apply apply, Definition of) {
  for (int uses : {1, 2})
    for (double factor : {1.0, 0.3}) {
      auto const result = check_model(Model(batch, 5, apply, uses, factor), batch);
      CAPTURE(result.where);
      CHECK(result.ok());
    }
  Trial<Model<Apply>, double> trial(Model(batch, 5, apply));
  auto const loss = trial.step(batch);
  double expected = 0;
  for (std::size_t i = 0; i < 16 * 5; ++i) {
    if (!batch.layout().is_token(static_cast<Index>(i) / 5)) continue;
    if constexpr (std::is_invocable_v<Definition, double, double, std::size_t>)
      expected += of(trial.values[i], static_cast<double>(trial.model.target[i]), i % 5);
    else
      expected += of(trial.values[i], static_cast<double>(trial.model.target[i]));
  }
  CHECK(loss.weight == 7 * 5);
  // 35 terms of a few roundings each, all of one sign.
  CHECK(std::abs(loss.sum - expected) <= 64 * 0x1p-53 * expected);
  CHECK(trial.evaluate(batch).sum == loss.sum);
  Trial<Model<Apply>, double> half(Model(batch, 5, apply, 1, 0.5));
  CHECK(half.step(batch).sum == loss.sum / 2);

  TokenBatch const none({}, 4, 11);
  Trial<Model<Apply>, float> empty(Model(none, 5, apply));
  auto const nothing = empty.step(none);
  CHECK(nothing.sum == 0);
  CHECK(nothing.weight == 0);
}

/// The message of the error of type E that a step throws; empty if it throws none.
template <class E, class Apply>
[[nodiscard]] std::string refusal(Model<Apply> const& model) {
  Trial<Model<Apply>, float> trial(model);
  try {
    static_cast<void>(trial.step(batch));
  } catch (E const& error) {
    return error.what();
  }
  return "";
}

}  // namespace loss_check
