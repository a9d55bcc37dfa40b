// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/l2_normalize.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <lockstep/core/thread_pool.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "larger_error.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;

namespace {

template <class T>
struct Normalized {
  std::vector<T> y, reciprocals, dx;
  bool operator==(Normalized const&) const = default;
};

/// Forward and backward of `rows` rows, whose gradient begins as `before`.
template <class T>
Normalized<T> normalized(std::vector<T> const& x, std::vector<T> const& dy, std::vector<T> const& before, Index rows,
                         Index width, T epsilon, Write write, int threads) {
  using Kernel = kernel::L2Normalize<HostSpace>;
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  Normalized<T> out{x, std::vector<T>(static_cast<std::size_t>(rows)), before};
  Kernel::forward<T>(stream, view(x, rows, width), epsilon, view(out.reciprocals, rows), view(out.y, rows, width));
  Kernel::backward<T>(stream, view(dy, rows, width), view(x, rows, width), epsilon, view(out.reciprocals, rows),
                      view(out.dx, rows, width), write);
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("rows get length 1, and the gradient is orthogonal to them", T, float, double) {
  double const unit = std::numeric_limits<T>::epsilon() / 2;
  for (Index rows : {0, 1, 63, 65})
    for (Index width : {1, 2, 31, 33, 300}) {
      auto const count = rows * width;
      auto const x = values<T>(count, 1, 4), dy = values<T>(count, 2), before = values<T>(count, 3);
      auto const fresh = normalized<T>(x, dy, before, rows, width, T(1e-12), Write::overwrite, 1),
                 added = normalized<T>(x, dy, before, rows, width, T(1e-12), Write::add, 1);
      double worst = 0;
      bool sums = true;
      for (Index row = 0; row < rows; ++row) {
        long double squares = 0, dot = 0, terms = 0;
        for (Index i = row * width; i < (row + 1) * width; ++i) {
          auto const at = static_cast<std::size_t>(i);
          squares += static_cast<long double>(x[at]) * x[at];
          dot += static_cast<long double>(x[at]) * dy[at];
          terms += std::abs(static_cast<long double>(x[at]) * dy[at]);
        }
        auto const length = std::sqrt(squares);
        for (Index i = row * width; i < (row + 1) * width; ++i) {
          auto const at = static_cast<std::size_t>(i);
          auto const n = x[at] / length;
          // Sums of up to 300 terms round at most 40 times; the root, the quotient and the products once each.
          double const y_bound = 26 * unit * static_cast<double>(std::abs(n));
          double const dx_bound =
              100 * unit *
              static_cast<double>((std::abs(static_cast<long double>(dy[at])) + std::abs(n) * terms / length) / length);
          auto const dx = (dy[at] - n * dot / length) / length;
          worst =
              lockstep_test::larger_error(worst, std::abs(static_cast<double>(fresh.y[at] - n)) / (y_bound + 1e-300));
          worst = lockstep_test::larger_error(worst,
                                              std::abs(static_cast<double>(fresh.dx[at] - dx)) / (dx_bound + 1e-300));
          sums = sums && added.dx[at] == before[at] + fresh.dx[at];
        }
      }
      CAPTURE(rows);
      CAPTURE(width);
      CHECK(worst <= 1);
      CHECK(sums);
      CHECK(normalized<T>(x, dy, before, rows, width, T(1e-12), Write::add, 3) == added);
    }
}

TEST_CASE_TEMPLATE("a row shorter than epsilon is divided by epsilon, and so is its gradient", T, float, double) {
  std::vector<T> const x{0, 0, T(0.25), 0, 3, 4}, dy{1, 2, 1, 2, 1, 0};
  auto const got = normalized<T>(x, dy, x, 3, 2, T(0.5), Write::overwrite, 1);
  CHECK(got.reciprocals == std::vector<T>{2, 2, T(1) / 5});
  CHECK(std::vector<T>(got.y.begin(), got.y.begin() + 4) == std::vector<T>{0, 0, T(0.5), 0});
  CHECK(std::vector<T>(got.dx.begin(), got.dx.begin() + 4) == std::vector<T>{2, 4, 2, 4});
  CHECK(got.dx[4] == doctest::Approx(0.2 * (1 - 0.36)));
  CHECK(got.dx[5] == doctest::Approx(-0.2 * 0.48));
}
