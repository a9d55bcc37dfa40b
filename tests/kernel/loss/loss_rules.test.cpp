// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/loss/loss_rules.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

using namespace lockstep;
using kernel::LossAt;

namespace {

/// Returns a rule's largest error over predictions and targets, in units in the last place of `scale` for each; `of(x,
/// t)` gives the definition in long double.
template <class T, class Rule, class Definition>
LossAt<double> worst_of(Rule rule, std::vector<double> const& targets, Definition of) {
  double const unit = std::numeric_limits<T>::epsilon() / 2;
  LossAt<double> worst{0, 0};
  std::vector<double> predictions{0, 1e-6, 0.5, 1, 2.5, 17, 60, 86};
  for (double x = 1e-3; x < 20; x *= 1.07) predictions.push_back(x);
  for (double magnitude : predictions)
    for (double sign : {-1.0, 1.0})
      for (double target : targets) {
        auto const x = static_cast<T>(sign * magnitude), t = static_cast<T>(target);
        auto const got = rule(x, t);
        LossAt<long double> const exact = of(static_cast<long double>(x), static_cast<long double>(t));
        auto const off = [unit](T is, long double should) {
          auto const distance = std::abs(static_cast<double>(is - should));
          return distance == 0 ? 0 : distance / (unit * std::abs(static_cast<double>(should)));
        };
        worst.value = std::max(worst.value, off(got.value, exact.value));
        worst.slope = std::max(worst.slope, off(got.slope, exact.slope));
      }
  return worst;
}

long double softplus(long double x) { return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x)); }
long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE_TEMPLATE("distances: values and slopes to the last place", T, float, double) {
  std::vector<double> const targets{-3, -0.25, 0, 0.5, 1, 8};
  auto const squared = worst_of<T>(kernel::SquaredError{}, targets, [](long double x, long double t) {
    return LossAt<long double>{(x - t) * (x - t), 2 * (x - t)};
  });
  CHECK(squared.value <= 3.01);  // the difference rounds once, which squaring doubles, and the square once
  CHECK(squared.slope <= 1);
  auto const absolute = worst_of<T>(kernel::AbsoluteError{}, targets, [](long double x, long double t) {
    return LossAt<long double>{std::abs(x - t), x > t ? 1.0L : x < t ? -1.0L : 0.0L};
  });
  CHECK(absolute.value <= 1);
  CHECK(absolute.slope == 0);
  for (double quantile : {0.125, 0.5, 0.75}) {
    auto const pinball = worst_of<T>(kernel::QuantileLoss{quantile}, targets, [quantile](long double x, long double t) {
      long double const slope = x > t ? 1 - quantile : x < t ? -quantile : 0;
      return LossAt<long double>{slope * (x - t), slope};
    });
    CHECK(pinball.value <= 2.01);  // the difference rounds once, and the product once
    CHECK(pinball.slope == 0);     // these quantiles are exact
  }
  for (double delta : {0.125, 1.0, 4.0}) {
    auto const huber = worst_of<T>(kernel::HuberLoss{delta}, targets, [delta](long double x, long double t) {
      long double const d = std::abs(x - t), sign = x < t ? -1 : 1;
      return d <= delta ? LossAt<long double>{d * d / 2, x - t}
                        : LossAt<long double>{delta * (d - delta / 2), sign * delta};
    });
    CHECK(huber.value <= 4.01);  // the difference may lose half of itself, which doubles its rounding; two more
    CHECK(huber.slope <= 1);
  }
}

TEST_CASE_TEMPLATE("binary cross entropy: relative errors of a few roundings for any logit", T, float, double) {
  for (double weight : {1.0, 3.0}) {
    auto const of = [weight](long double x, long double t) {
      return LossAt<long double>{weight * t * softplus(-x) + (1 - t) * softplus(x),
                                 (1 - t) * sigmoid(x) - weight * t * sigmoid(-x)};
    };
    // The exponential, the logarithm and the correcting quotient: 2 units each, 4 of 2^-24, and a few products; in
    // float, the exponential's argument is exact, because it is x.
    auto const labels = worst_of<T>(kernel::BinaryCrossEntropy{weight}, {0, 1}, of);
    CHECK(labels.value <= 14);
    CHECK(labels.slope <= 8);
    auto const between = worst_of<T>(kernel::BinaryCrossEntropy{weight}, {0.125, 0.5}, of);
    CHECK(between.value <= 14);  // both parts are positive; slopes are differences
  }
  kernel::BinaryCrossEntropy const plain;
  CHECK(plain(T{200}, T{1}).value < T(1e-37));
  CHECK(plain(T{-200}, T{1}).value == T(200));
  CHECK(plain(T{200}, T{0}).value == T(200));
  CHECK(plain(T{-200}, T{1}).slope == T(-1));
  CHECK(plain(T{200}, T{0}).slope == T(1));
}

TEST_CASE_TEMPLATE("NaN stays NaN", T, float, double) {
  T const nan = std::numeric_limits<T>::quiet_NaN();
  auto const check = [nan](auto rule) {
    CHECK(std::isnan(rule(nan, T{1}).value));
    CHECK(std::isnan(rule(nan, T{1}).slope));
    CHECK(std::isnan(rule(T{1}, nan).value));
    CHECK(std::isnan(rule(T{1}, nan).slope));
  };
  check(kernel::SquaredError{});
  check(kernel::AbsoluteError{});
  check(kernel::QuantileLoss{});
  check(kernel::HuberLoss{});
  check(kernel::BinaryCrossEntropy{});
}

TEST_CASE("targets of a binary cross entropy are in [0, 1]") {
  kernel::BinaryCrossEntropy const rule;
  for (double good : {0.0, 0.3, 1.0}) CHECK(rule.takes(good));
  for (double bad : {-1e-9, 1.0000001, std::nan("")}) CHECK_FALSE(rule.takes(bad));
}
