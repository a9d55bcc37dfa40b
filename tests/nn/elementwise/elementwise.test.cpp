// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/elementwise/elementwise.hpp>

#include <doctest/doctest.h>

#include <cmath>

#include <lockstep/nn/elementwise/silu.hpp>

#include "nn/activation_check.hpp"
#include "nn/space_check.hpp"

namespace {
using namespace activation_check;

/// log(1 + e^bx) / b, by value and slope
struct Softplus {
  static constexpr char const* name = "softplus";
  double b;
  template <class T>
  constexpr lockstep::kernel::ActivationAt<T> operator()(T x) const {
    T const by = static_cast<T>(b), e = std::exp(-std::abs(by * x));
    return {std::max(x, T{0}) + std::log1p(e) / by, (x < 0 ? e : T{1}) / (1 + e)};
  }
};
/// e^x - 1 below zero, whose slope follows from its value
struct Elu {
  static constexpr char const* name = "elu";
  template <class T>
  constexpr T operator()(T x) const {
    return x < 0 ? std::expm1(x) : x;
  }
  template <class T>
  constexpr T backward(T dy, T y) const {
    return y < 0 ? dy * (y + 1) : dy;
  }
};

auto const softplus = [](auto& context, auto const&, auto const& x) {
  return nn::elementwise(context, Softplus{.b = 3}, x);
};
auto const elu = [](auto& context, auto const&, auto const& x) { return nn::elementwise(context, Elu{}, x); };

}  // namespace

TEST_CASE("gradient of the input by either kind of rule, for sequences and images") {
  activation_check::check_gradients(softplus);
  activation_check::check_gradients(elu);
  auto const image = space_check::trial<double>(NoParameters{}, lockstep::Extents<4>{2, 4, 3, 5}, softplus).check();
  CAPTURE(image.where);
  CHECK(image.ok());
  auto const rows = space_check::trial<double>(NoParameters{}, lockstep::Extents<2>{2, 5}, elu).check();
  CAPTURE(rows.where);
  CHECK(rows.ok());
}

TEST_CASE_TEMPLATE("bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(softplus);
  activation_check::check_bits<T>(elu);
}

TEST_CASE("a rule of the library equals its function") {
  auto const by_rule = [](auto& context, auto const&, auto const& x) {
    return nn::elementwise(context, lockstep::kernel::Silu{}, x);
  };
  auto const by_name = [](auto& context, auto const&, auto const& x) { return nn::silu(context, x); };
  Batch const batch{.rows = 5, .length = 7};
  CHECK(run<float>(NoParameters{}, 33, batch, by_rule, 1) == run<float>(NoParameters{}, 33, batch, by_name, 1));
}
