// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/loss/elementwise_loss.hpp>

#include <doctest/doctest.h>

#include <limits>

#include <lockstep/data/column.hpp>
#include <lockstep/nn/loss/binary_cross_entropy_with_logits.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>

#include "loss_check.hpp"

using namespace lockstep;

namespace {

/// A custom rule: the logarithm of the hyperbolic cosine.
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

/// Predictions 2, 0 and -1, one number for each row, for evaluation.
struct ThreeRows {
  lockstep_test::TokenBatch batch{{1, 1, 1}, 1, 11};
  lockstep_test::Trial<loss_check::Model<decltype(apply)>, float> trial{{batch, 1, apply}};
  ThreeRows() {
    trial.values[0] = 2, trial.values[1] = 0, trial.values[2] = -1;
    nn::Pass(trial.context()).begin_micro_batch(nn::Mode::evaluation, 1);
  }
};

}  // namespace

TEST_CASE("elementwise_loss: value, weight and gradients of a custom rule") {
  loss_check::check(apply, [](double x, double t) { return std::log(std::cosh(x - t)); });
}

TEST_CASE("elementwise_loss: an absent target is refused, unless factors give the row's weight") {
  ThreeRows rows;
  auto& context = rows.trial.context();
  auto const x = lockstep_test::learned(context, rows.trial.model.prediction);
  std::vector<float> const target{1, 0, 3}, factors{1, 0, 1};
  bool const present[]{true, false, true};
  struct Optional {
    TensorView<float const, 1, HostSpace> values;
    TensorView<bool const, 1, HostSpace> present;
  } const column{{target.data(), {3}}, {present, {3}}};
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::elementwise_loss(context, LogCosh{}, x, column)),
                       doctest::Contains("log_cosh: row 1 of the batch has no value: its std::optional is empty"),
                       RowError);
  TensorView<float const, 1, HostSpace> const by(factors.data(), {3});
  auto const loss = nn::elementwise_loss(context, kernel::SquaredError{}, x, nn::weighted(column, by));
  CHECK(loss.sum == 1 + 16);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  CHECK(nn::elementwise_loss(context, kernel::SquaredError{}, x, nn::weighed(column, by)).sum == loss.sum);
#pragma GCC diagnostic pop
  std::vector<float> const others{1, 2, 1};
  TensorView<float const, 1, HostSpace> const by_others(others.data(), {3});
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::elementwise_loss(context, LogCosh{}, x, nn::weighted(column, by_others))),
      doctest::Contains("log_cosh: row 1 of the batch has no value: its std::optional is empty, and training would use "
                        "0; nn::weighted(nn::where_present(targets), factors), or a factor of 0, leaves"),
      RowError);
}

TEST_CASE("elementwise_loss: one number as the target of every element") {
  auto const constant = [](double target) {
    return [target](auto& context, auto const& x, auto const&, double factor) {
      return nn::elementwise_loss(context, LogCosh{}, x, target, factor);
    };
  };
  loss_check::check(constant(0.75), [](double x, double) { return std::log(std::cosh(x - 0.75)); });

  ThreeRows rows;
  auto& context = rows.trial.context();
  auto const x = lockstep_test::learned(context, rows.trial.model.prediction);
  CHECK(nn::mean_squared_error(context, x, 1).sum == 1 + 1 + 4);
  CHECK(nn::mean_squared_error(context, x, 1.0f, {.factor = 0.5}).sum == 3);
  auto const image = x.reshape(Extents<4>{1, 3, 1, 1});
  CHECK(nn::mean_squared_error(context, image, 1).weight == 3);
  std::vector<float> const smooth(3, 0.9f);
  TensorView<float const, 1, HostSpace> const column(smooth.data(), {3});
  CHECK(nn::binary_cross_entropy_with_logits(context, x, 0.9f, {.positive_weight = 2}).sum ==
        nn::binary_cross_entropy_with_logits(context, x, column, {.positive_weight = 2}).sum);
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::binary_cross_entropy_with_logits(context, x, -1)),
                       "binary_cross_entropy_with_logits: the target is -1, outside [0, 1]; give 0 or 1, or the "
                       "probability of 1",
                       ConfigError);
  std::vector<float> const weights(1, 2);
  CHECK_THROWS_WITH_AS(
      static_cast<void>(nn::binary_cross_entropy_with_logits(context, x, 1, {.positive_weights = weights})),
      "binary_cross_entropy_with_logits: there are 1 positive_weights and one target for all elements; give "
      "positive_weight, or a target for each element",
      ConfigError);
}

TEST_CASE("elementwise_loss: one vector per row, one number per row, integers as targets") {
  ThreeRows rows;
  auto& context = rows.trial.context();
  std::vector<int> const target{1, 2, 3};
  auto const x = lockstep_test::learned(context, rows.trial.model.prediction);
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

namespace {
/// The loss of rows and of tokens, each with a factor.
struct Factors {
  std::vector<float> numbers;
  [[nodiscard]] TensorView<float const, 1, HostSpace> view() const { return {numbers.data(), {std::ssize(numbers)}}; }
};
}  // namespace

TEST_CASE("elementwise_loss: weighted targets have a factor for each row or token, on loss and gradient equally") {
  for (auto const& lengths : {std::vector<std::int32_t>{1, 1, 1, 1}, {3, 0, 2}}) {
    Index const length = lengths.size() == 4 ? 1 : 3;
    lockstep_test::TokenBatch const batch(lengths, length, 11);
    auto const slots = batch.layout().slots;
    Factors factors;
    for (Index i = 0; i < slots; ++i) factors.numbers.push_back(0.75f * static_cast<float>(i) - 1);
    auto const weighted = [&](auto& context, auto const& x, auto const& target, double factor) {
      return nn::elementwise_loss(context, LogCosh{}, x, nn::weighted(target, factors.view()), factor);
    };
    loss_check::Model const model(batch, 3, weighted);
    loss_check::Model const plain(batch, 3, apply);
    auto const result = lockstep_test::check_model(model, batch);
    CAPTURE(result.where);
    CHECK(result.ok());
    lockstep_test::Trial<std::remove_const_t<decltype(model)>, double> one(model);
    lockstep_test::Trial<std::remove_const_t<decltype(plain)>, double> other(plain);
    auto const got = one.step(batch), without = other.step(batch);
    CHECK(got.weight == without.weight);
    for (Index i = 0; i < slots * 3; ++i) {
      auto const at = static_cast<std::size_t>(one.layout.entries()[0].offset + i);
      CHECK(
          one.gradients[at] ==
          doctest::Approx(other.gradients[at] * static_cast<double>(factors.numbers[static_cast<std::size_t>(i / 3)])));
    }
    factors.numbers.pop_back();
    CHECK_THROWS_WITH_AS(one.step(batch), doctest::Contains(" factors; each row needs one"), ShapeError);
  }
}

namespace {
/// The rows' numbers against targets, some of which are missing.
struct Missing {
  std::vector<float> factors{};
  nn::Parameter prediction{{5, 1}, nn::Initializer::normal(1)};
  void visit(auto&& each) { each("prediction", prediction); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, data::OptionalColumn<float, HostSpace> const& targets) const {
    auto const x = lockstep_test::learned(context, prediction);
    if (factors.empty()) return nn::mean_squared_error(context, x, nn::where_present(targets), {.factor = 3});
    TensorView<float const, 1, HostSpace> const by{factors.data(), {std::ssize(factors)}};
    return nn::mean_squared_error(context, x, nn::weighted(nn::where_present(targets), by), {.factor = 3});
  }
};
}  // namespace

TEST_CASE("elementwise_loss: rows without a target do not count, in the loss and its weight") {
  std::vector<float> const numbers{1, std::numeric_limits<float>::quiet_NaN(), 3, 0, -2};
  bool const present[]{true, false, true, false, true};
  data::OptionalColumn<float, HostSpace> const targets{{numbers.data(), {5}}, {present, {5}}};
  auto const result = lockstep_test::check_model(Missing{}, targets);
  CHECK_MESSAGE(result.ok(), result.where);
  lockstep_test::Trial<Missing, double> trial(Missing{});
  auto const loss = trial.step(targets);
  CHECK(loss.weight == 3);
  double sum = 0;
  auto const& x = trial.values;
  for (std::size_t i : {0u, 2u, 4u}) sum += 3 * std::pow(x[i] - static_cast<double>(numbers[i]), 2);
  CHECK(loss.sum == doctest::Approx(sum));
  CHECK(trial.gradients[1] == 0);
  bool const none[5]{};
  using Targets = data::OptionalColumn<float, HostSpace>;
  auto const nothing = trial.step(Targets{{numbers.data(), {5}}, {none, {5}}});
  CHECK(nothing.weight == 0);
  CHECK(nothing.sum == 0);
  CHECK_THROWS_WITH_AS(trial.step(Targets{{numbers.data(), {4}}, {present, {4}}}),
                       doctest::Contains("the prediction has 5 rows and there are 4 targets"), ShapeError);

  std::vector<float> const factors{2, 5, 0.5f, 7, 1};
  auto const weighted_result = lockstep_test::check_model(Missing{factors}, targets);
  CHECK_MESSAGE(weighted_result.ok(), weighted_result.where);
  lockstep_test::Trial<Missing, double> weighted(Missing{factors});
  auto const of_factors = weighted.step(targets);
  CHECK(of_factors.weight == 3);
  sum = 0;
  for (std::size_t i : {0u, 2u, 4u})
    sum += 3 * static_cast<double>(factors[i]) * std::pow(weighted.values[i] - static_cast<double>(numbers[i]), 2);
  CHECK(of_factors.sum == doctest::Approx(sum));
  CHECK(weighted.gradients[1] == 0);
}
