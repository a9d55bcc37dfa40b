// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gelu.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "values.hpp"
#include "view.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::Write;
using lockstep::kernel::Gelu;
using lockstep::memory::Stream;
using lockstep_test::values;
using lockstep_test::view;

namespace {

double phi(double x) { return 0.5 * std::erfc(-x / std::sqrt(2.0)); }
double density(double x) { return std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0)); }

struct Both {
  std::vector<float> y, slope;
};
Both forward(std::vector<float> const& x, int threads = 1) {
  ThreadPool pool(threads);
  auto const size = static_cast<Index>(x.size());
  Both out{std::vector<float>(x.size()), std::vector<float>(x.size())};
  Gelu<HostSpace>::forward<float>(Stream<HostSpace>(pool), view(x, size), view(out.y, size), view(out.slope, size));
  return out;
}

}  // namespace

TEST_CASE("value and slope in float lie within a few roundings of the exact ones") {
  std::vector<float> x;
  for (int i = -20'000; i <= 20'000; ++i) x.push_back(static_cast<float>(i) * 7e-4F);  // [-14, 14]
  for (float tiny : {0.0F, -0.0F, 1e-30F, -1e-30F, 1e-38F, 30.0F, -30.0F, 1e30F, -1e30F}) x.push_back(tiny);
  auto const [y, slope] = forward(x);
  double worst_y = 0, worst_slope = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    auto const at = static_cast<double>(x[i]);
    // The integral: 1 rounding of the fit, and about 2 of the sum behind it as its last term is at least a quarter of
    // it, 2 of the exponential, 3 of the products; its argument's rounding weighs x^2/2 <= 1.6 / integral. All relative
    // to at most 1/2, plus 1 of the subtraction from 1: 6 * 2^-24 in all. Then 1 rounding of the product with x.
    double const y_bound = 7 * 0x1p-24 * std::abs(at) + 1e-37;
    // The slope adds x * density: 2 of the exponential, x^2/2 of its argument, 3 of products; x density (5 + x^2/2)
    // < 2.
    double const slope_bound = (7 + 2 + 1) * 0x1p-24 + 1e-37;
    worst_y = std::max(worst_y, std::abs(static_cast<double>(y[i]) - at * phi(at)) / y_bound);
    worst_slope =
        std::max(worst_slope, std::abs(static_cast<double>(slope[i]) - (phi(at) + at * density(at))) / slope_bound);
  }
  CHECK(worst_y <= 1);
  CHECK(worst_slope <= 1);
}

TEST_CASE("far from zero it is the identity or nothing, and nan stays nan") {
  auto const [y, slope] =
      forward({100.0F, -100.0F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()});
  CHECK(y[0] == 100.0F);
  CHECK(slope[0] == 1.0F);
  CHECK(y[1] == 0.0F);
  CHECK(slope[1] == 0.0F);
  CHECK(std::isnan(y[2]));
  CHECK(std::isnan(slope[2]));
  CHECK(y[3] == std::numeric_limits<float>::infinity());
}

TEST_CASE_TEMPLATE("backward multiplies by the slope", T, float, double) {
  ThreadPool pool(2);
  Stream<HostSpace> const stream(pool);
  for (Index n : {0, 1, 33, 10'000}) {
    auto const x = values<T>(n, 1, 3), dy = values<T>(n, 2);
    std::vector<T> y(x.size()), slope(x.size()), dx(x.size(), std::numeric_limits<T>::quiet_NaN()), value(x.size());
    Gelu<HostSpace>::forward<T>(stream, view(x, n), view(y, n), view(slope, n));
    Gelu<HostSpace>::forward<T>(stream, view(x, n), view(value, n));
    CHECK(value == y);
    Gelu<HostSpace>::backward<T>(stream, view(dy, n), view(slope, n), view(dx, n), Write::overwrite);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(dx[i] == dy[i] * slope[i]);
    Gelu<HostSpace>::backward<T>(stream, view(dy, n), view(slope, n), view(dx, n), Write::add);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(dx[i] == 2 * (dy[i] * slope[i]));
  }
}

TEST_CASE("bits do not depend on threads") {
  auto const x = values<float>(50'001, 1, 5);
  auto const one = forward(x);
  for (int threads : {2, 4}) {
    auto const other = forward(x, threads);
    CHECK(std::memcmp(one.y.data(), other.y.data(), one.y.size() * sizeof(float)) == 0);
    CHECK(std::memcmp(one.slope.data(), other.slope.data(), one.y.size() * sizeof(float)) == 0);
  }
}
