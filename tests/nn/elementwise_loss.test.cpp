// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise_loss.hpp>

#include <doctest/doctest.h>

#include "nn/loss_check.hpp"

using namespace lockstep;

namespace {

/// A rule of one's own: the logarithm of the hyperbolic cosine.
struct LogCosh {
  static constexpr char const* name = "log_cosh";
  template <class T>
  constexpr kernel::LossAt<T> operator()(T x, T t) const {
    return {std::log(std::cosh(x - t)), std::tanh(x - t)};
  }
};
auto const apply = [](auto& context, auto const& x, auto const& target, double factor) {
  return nn::elementwise_loss(context, LogCosh{}, x, target, factor);
};

}  // namespace

TEST_CASE("elementwise_loss: value, weight and gradients of a rule of one's own") {
  loss_check::check(apply, [](double x, double t) { return std::log(std::cosh(x - t)); });
}

TEST_CASE("elementwise_loss: one vector per row, one number per row, integers as targets") {
  lockstep_test::TokenBatch const rows({1, 1, 1}, 1, 11);
  loss_check::Model const model(rows, 1, apply);
  lockstep_test::Trial<std::remove_const_t<decltype(model)>, float> trial(model);
  trial.values[0] = 2, trial.values[1] = 0, trial.values[2] = -1;
  auto& context = trial.context();
  context.begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<int> const target{1, 2, 3};
  auto const x = lockstep_test::learned(context, trial.model.prediction);
  auto const loss_of = [&](Index count) {
    return nn::elementwise_loss(context, kernel::SquaredError{}, x,
                                TensorView<int const, 1, HostSpace>(target.data(), {count}));
  };
  auto const loss = loss_of(3);
  CHECK(loss.sum == 1 + 4 + 16);
  CHECK(loss.weight == 3);
  CHECK_THROWS_WITH_AS(static_cast<void>(loss_of(2)),
                       doctest::Contains("mean_squared_error: the prediction is [3, 1] and the target [2]"),
                       ShapeError);
}
