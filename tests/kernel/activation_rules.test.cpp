// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/activation_rules.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "larger_error.hpp"

using namespace lockstep;

namespace {

template <class T>
std::vector<T> arguments() {
  std::vector<T> x{0, T(1e-30), T(1e-6), 1, 17, 40, 80};
  for (double next = 1e-4; next < 30; next *= 1.003) x.push_back(static_cast<T>(next));
  for (std::size_t i = 0, count = x.size(); i < count; ++i) x.push_back(-x[i]);
  return x;
}

/// Returns a bound on the distance of `got` from the exact value, in roundings of `scale`.
template <class T, class Got, class Exact, class Scale>
double worst_of(Got got, Exact exact, Scale scale) {
  double worst = 0;
  for (T const x : arguments<T>()) {
    auto const off = std::abs(static_cast<double>(got(x) - exact(static_cast<long double>(x))));
    auto const unit =
        static_cast<double>(std::numeric_limits<T>::epsilon() / 2 * std::abs(scale(static_cast<long double>(x))));
    if (off > 0) worst = std::max(worst, off / unit);
  }
  return worst;
}

long double sigmoid(long double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE_TEMPLATE("sigmoid, tanh, exp and silu are within a few roundings of the exact value, also for small inputs",
                   T, float, double) {
  // The exponential has an error of 2 units in its last place, 4 roundings; the sum and the quotient round once each,
  // and numbers that are not powers of two may count double.
  CHECK(worst_of<T>(kernel::Sigmoid{}, sigmoid, sigmoid) <= 8);
  auto const tanh = [](long double x) { return std::tanh(x); };
  CHECK(worst_of<T>(kernel::Tanh{}, tanh, tanh) <= 6);
  auto const exp = [](long double x) { return std::exp(x); };
  CHECK(worst_of<T>(kernel::Exp{}, exp, exp) <= 4);
  auto const silu = [](long double x) { return x * sigmoid(x); };
  CHECK(worst_of<T>(kernel::Silu{}, silu, silu) <= 9);
  auto const slope = [](long double x) { return sigmoid(x) * (1 + x * sigmoid(-x)); };
  auto const terms = [](long double x) { return sigmoid(x) * (1 + std::abs(x) * sigmoid(-x)); };
  CHECK(worst_of<T>([](T x) { return kernel::Silu{}.at(x).slope; }, slope, terms) <= 20);
}

TEST_CASE_TEMPLATE("elu, softplus, mish and the tanh form of gelu are within a few roundings of the exact value", T,
                   float, double) {
  auto const elu = [](long double x) { return x > 0 ? x : std::expm1(x) / 2; };
  // The tangent has 6 roundings; 1 - t adds its error times at most 1, and product, quotient and alpha round.
  CHECK(worst_of<T>(kernel::Elu{0.5}, elu, elu) <= 20);
  auto const softplus = [](long double x) { return 2 * std::log1p(std::exp(-std::abs(x / 2))) + std::max(x, 0.0L); };
  // 4 roundings of the exponential, and as many of logarithm, quotient and sum together.
  CHECK(worst_of<T>(kernel::Softplus{0.5}, softplus, softplus) <= 8);
  auto const half = [](long double x) { return sigmoid(x / 2); };
  CHECK(worst_of<T>([](T x) { return kernel::Softplus{0.5}.at(x).slope; }, half, half) <= 8);

  auto const tangent = [](long double x) { return std::tanh(std::log1p(std::exp(x))); };
  auto const mish = [&](long double x) { return x * tangent(x); };
  // 4 roundings of e, which count twice at most in the quotient, and 5 operations.
  CHECK(worst_of<T>(kernel::Mish{}, mish, mish) <= 16);
  auto const mish_slope = [&](long double x) { return tangent(x) + x * (1 - tangent(x) * tangent(x)) * sigmoid(x); };
  auto const mish_terms = [&](long double x) {
    return tangent(x) + std::abs(x) * (1 - tangent(x) * tangent(x)) * sigmoid(x);
  };
  CHECK(worst_of<T>([](T x) { return kernel::Mish{}.at(x).slope; }, mish_slope, mish_terms) <= 40);

  auto const root = std::sqrt(2 / std::acos(-1.0L));
  auto const u = [=](long double x) { return 2 * root * (x + 0.044715L * x * x * x); };
  auto const du = [=](long double x) { return 2 * root * (1 + 3 * 0.044715L * x * x); };
  auto const gelu = [=](long double x) { return x * sigmoid(u(x)); };
  // The logistic function has 8 roundings, and those of its argument, 5, count |u| times s(-u).
  // The floor covers values that round to zero.
  long double const floor = 1e-25L;
  auto const gelu_terms = [=](long double x) {
    return std::abs(x) * sigmoid(u(x)) * (1 + std::abs(u(x)) * sigmoid(-u(x))) + floor;
  };
  CHECK(worst_of<T>(kernel::GeluTanh{}, gelu, gelu_terms) <= 10);
  auto const slope = [=](long double x) { return sigmoid(u(x)) * (1 + x * sigmoid(-u(x)) * du(x)); };
  auto const slope_terms = [=](long double x) {
    return sigmoid(u(x)) * (1 + std::abs(u(x))) * (1 + std::abs(x) * sigmoid(-u(x)) * du(x)) + floor;
  };
  CHECK(worst_of<T>([](T x) { return kernel::GeluTanh{}.at(x).slope; }, slope, slope_terms) <= 20);
}

TEST_CASE_TEMPLATE(
    "relu6, hardsigmoid and hardswish are polynomials between their kinks, and constant or linear outside", T, float,
    double) {
  T const infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (T const far : {T(-3), T(-1000), -infinity}) {
    CHECK(kernel::Relu6{}(far) == 0);
    CHECK(kernel::Hardsigmoid{}(far) == 0);
    CHECK(kernel::Hardswish{}(far) == 0);
    CHECK(kernel::Hardswish{}.at(far).slope == 0);
  }
  for (T const far : {T(6), T(1000), infinity}) {
    CHECK(kernel::Relu6{}(far) == 6);
    CHECK(kernel::Hardsigmoid{}(far) == 1);
    CHECK(kernel::Hardswish{}(far) == far);
    CHECK(kernel::Hardswish{}.at(far).slope == 1);
  }
  CHECK(kernel::Relu6{}(T(1.5)) == T(1.5));
  CHECK(kernel::Hardsigmoid{}(T(1.5)) == T(0.75));
  CHECK(kernel::Hardswish{}(T(1.5)) == T(1.125));
  CHECK(kernel::Hardswish{}(T(-1.5)) == T(-0.375));
  CHECK(kernel::Hardswish{}.at(T(1.5)).slope == 1);
  CHECK(kernel::Hardswish{}.at(T(-1.5)).slope == 0);
  for (T const y : {T(0), T(6), T(-0.0)}) CHECK(kernel::Relu6{}.backward(T(3), y) == 0);
  CHECK(kernel::Relu6{}.backward(T(3), T(5)) == 3);
  for (T const y : {T(0), T(1)}) CHECK(kernel::Hardsigmoid{}.backward(T(3), y) == 0);
  CHECK(kernel::Hardsigmoid{}.backward(T(3), T(0.5)) == T(0.5));
  CHECK(std::isnan(kernel::Relu6{}(nan)));
  CHECK(std::isnan(kernel::Relu6{}.backward(T(3), nan)) == false);
  CHECK(std::isnan(kernel::Hardsigmoid{}(nan)));
  CHECK(std::isnan(kernel::Hardswish{}(nan)));
}

TEST_CASE("gelu's value and slope in float are within a few roundings of the exact ones") {
  std::vector<float> arguments;
  for (int i = -20'000; i <= 20'000; ++i) arguments.push_back(static_cast<float>(i) * 7e-4F);  // [-14, 14]
  for (float tiny : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e-38F, 30.0F, -30.0F, 1e30F, -1e30F}) arguments.push_back(tiny);
  double worst_y = 0, worst_slope = 0;
  for (float const x : arguments) {
    auto const at = static_cast<double>(x);
    auto const phi = 0.5 * std::erfc(-at / std::sqrt(2.0));
    auto const density = std::exp(-at * at / 2) / std::sqrt(2 * std::acos(-1.0));
    auto const [y, slope] = kernel::Gelu{}.at(x);
    CHECK(kernel::Gelu{}(x) == y);
    // The integral: 1 rounding of the fit, and about 2 of the sum after it, because its last term is at least a quarter
    // of it; 2 of the exponential, 3 of the products; its argument's rounding counts x^2/2 <= 1.6 / integral. All are
    // relative to at most 1/2, plus 1 of the subtraction from 1: 6 * 2^-24 in all. Then 1 rounding of the product with
    // x.
    double const y_bound = 7 * 0x1p-24 * std::abs(at) + 1e-37;
    // The slope adds x * density: 2 of the exponential, x^2/2 of its argument, 3 of products; x density (5 + x^2/2) <
    // 2.
    double const slope_bound = (7 + 2 + 1) * 0x1p-24 + 1e-37;
    worst_y = lockstep_test::larger_error(worst_y, std::abs(static_cast<double>(y) - at * phi) / y_bound);
    worst_slope = lockstep_test::larger_error(
        worst_slope, std::abs(static_cast<double>(slope) - (phi + at * density)) / slope_bound);
  }
  CHECK(worst_y <= 1);
  CHECK(worst_slope <= 1);
}

TEST_CASE_TEMPLATE("backward multiplies by the derivative", T, float, double) {
  for (T const x : {T(-3), T(-0.5), T(0), T(0.25), T(2)}) {
    CHECK(kernel::Exp{}.backward(T(3), kernel::Exp{}(x)) == 3 * kernel::Exp{}(x));
    auto const s = sigmoid(x), t = std::tanh(static_cast<long double>(x));
    double const unit = std::numeric_limits<T>::epsilon() / 2;
    // y has an error of at most 8 roundings, and so has its distance from its limits.
    CHECK(std::abs(static_cast<double>(kernel::Sigmoid{}.backward(T(3), kernel::Sigmoid{}(x)) - 3 * s * (1 - s))) <=
          3 * 20 * unit);
    CHECK(std::abs(static_cast<double>(kernel::Tanh{}.backward(T(3), kernel::Tanh{}(x)) - 3 * (1 - t * t))) <=
          3 * 20 * unit);
    CHECK(kernel::Silu{}.backward(T(3), kernel::Silu{}.at(x).slope) == 3 * kernel::Silu{}.at(x).slope);
    CHECK(kernel::Gelu{}.backward(T(3), kernel::Gelu{}.at(x).slope) == 3 * kernel::Gelu{}.at(x).slope);
  }
}

TEST_CASE_TEMPLATE("far from zero they reach their limits, and NaN stays NaN", T, float, double) {
  T const infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  for (T const far : {T(1000), std::numeric_limits<T>::max(), infinity}) {
    CHECK(kernel::Sigmoid{}(far) == 1);
    CHECK(kernel::Sigmoid{}(-far) == 0);
    CHECK(kernel::Tanh{}(far) == 1);
    CHECK(kernel::Tanh{}(-far) == -1);
    CHECK(kernel::Silu{}(far) == far);
    CHECK(kernel::Gelu{}(far) == far);
    CHECK(kernel::GeluTanh{}(far) == far);
    CHECK(kernel::GeluTanh{}.at(far).slope == 1);
    CHECK(kernel::Mish{}(far) == far);
    CHECK(kernel::Softplus{}(far) == far);
    CHECK(kernel::Softplus{}(-far) == 0);
    CHECK(kernel::Elu{2}(far) == far);
    CHECK(kernel::Elu{2}(-far) == -2);
    CHECK(kernel::Elu{2}.backward(T(3), T(-2)) == 0);
    CHECK(kernel::Elu{2}.backward(T(3), T(0)) == 6);
    CHECK(kernel::Relu{}(far) == far);
    CHECK(kernel::Relu{}(-far) == 0);
  }
  CHECK(kernel::Exp{}(infinity) == infinity);
  CHECK(kernel::Exp{}(std::numeric_limits<T>::max()) == infinity);
  CHECK(kernel::Exp{}(T(-1000)) == 0);
  CHECK(kernel::Exp{}(-infinity) == 0);
  CHECK(std::isnan(kernel::Exp{}(nan)));
  CHECK(kernel::Gelu{}(T(-100)) == 0);
  CHECK(kernel::Gelu{}.at(T(-100)).slope == 0);
  CHECK(kernel::Gelu{}.at(T(100)).slope == 1);
  CHECK(kernel::GeluTanh{}(T(-1000)) == 0);
  CHECK(kernel::GeluTanh{}.at(T(-1000)).slope == 0);
  CHECK(kernel::Mish{}(T(-1000)) == 0);
  CHECK(kernel::Mish{}.at(T(-1000)).slope == 0);
  CHECK(kernel::Mish{}.at(T(1000)).slope == 1);
  CHECK(kernel::Silu{}(T(-1000)) == 0);
  CHECK(kernel::Silu{}.at(T(-1000)).slope == 0);
  CHECK(kernel::Silu{}.at(T(1000)).slope == 1);
  CHECK(std::signbit(kernel::Tanh{}(T(-0.0))));
  CHECK_FALSE(std::signbit(kernel::Tanh{}(T(0))));
  CHECK(std::isnan(kernel::Sigmoid{}(nan)));
  CHECK(std::isnan(kernel::Tanh{}(nan)));
  CHECK(std::isnan(kernel::Silu{}(nan)));
  CHECK(std::isnan(kernel::Silu{}.at(nan).slope));
  CHECK(std::isnan(kernel::Gelu{}(nan)));
  CHECK(std::isnan(kernel::Gelu{}.at(nan).slope));
  CHECK(std::isnan(kernel::GeluTanh{}(nan)));
  CHECK(std::isnan(kernel::Mish{}(nan)));
  CHECK(std::isnan(kernel::Softplus{}(nan)));
  CHECK(std::isnan(kernel::Elu{}(nan)));
  CHECK(std::isnan(kernel::Relu{}(nan)));
}

TEST_CASE("relu: infinity passes, and zero has gradient zero") {
  constexpr float infinity = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> const y{infinity, 0, nan, 0, -0.0F}, expected{2, 0, 2, 0, 0};
  for (std::size_t i = 0; i < y.size(); ++i) CHECK(kernel::Relu{}.backward(2.0F, y[i]) == expected[i]);
}

TEST_CASE_TEMPLATE("leaky relu: zero, and values rounded to zero, have the negative slope, and NaN stays NaN", T, float,
                   double) {
  kernel::LeakyRelu const rule{0.5};
  T const tiny = std::numeric_limits<T>::denorm_min(), nan = std::numeric_limits<T>::quiet_NaN();
  for (T const x : {T(-8), -tiny, T(-0.0), T(0)}) {
    CHECK(rule(x) == x / 2);
    CHECK(rule.backward(T(3), rule(x)) == T(1.5));
  }
  for (T const x : {tiny, T(8), nan}) CHECK(rule.backward(T(3), rule(x)) == T(3));
  CHECK(rule(T(8)) == T(8));
  CHECK(std::isnan(rule(nan)));
  CHECK(kernel::LeakyRelu{0}(T(-8)) == 0);
  CHECK(kernel::LeakyRelu{0}.backward(T(3), T(-0.0)) == 0);
}
