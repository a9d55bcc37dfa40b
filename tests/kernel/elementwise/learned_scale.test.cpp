// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/learned_scale.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::LearnedScale<HostSpace>;

namespace {
kernel::LearnedFactor const at_most_8{8, std::log(8.0)};
}  // namespace

TEST_CASE_TEMPLATE("the factor is e^s up to its maximum, beyond which a gradient only leads back", T, float, double) {
  CHECK(at_most_8.of(T{0}) == 1);
  CHECK(at_most_8.of(T(-1)) == kernel::Exp{}(T(-1)));
  CHECK(at_most_8.of(T(2)) == kernel::Exp{}(T(2)));
  CHECK(at_most_8.of(T(3)) == 8);
  CHECK(at_most_8.gradient(T{0}, 5) == 5);
  CHECK(at_most_8.gradient(T{0}, -5) == -5);
  CHECK(at_most_8.gradient(T(3), 5) == 40);
  CHECK(at_most_8.gradient(T(3), -5) == 0);
  CHECK(std::isnan(at_most_8.gradient(T(3), std::numeric_limits<double>::quiet_NaN())));
  CHECK(std::isnan(at_most_8.of(std::numeric_limits<T>::quiet_NaN())));
}

TEST_CASE_TEMPLATE("products with the factor and its gradient, at all sizes, in place and added", T, float, double) {
  for (Index size : {0, 1, 31, 32, 33, 8191, 8192, 8193, 20000}) {
    auto const x = values<T>(size, 1), dy = values<T>(size, 2), before = values<T>(size, 3);
    T const s = T(0.5), by = at_most_8.of(s);
    std::vector<T> one;
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      auto y = x, sum = before;
      Kernel::run<T>(stream, at_most_8, &s, view(y, size), view(y, size), Write::overwrite);
      Kernel::run<T>(stream, at_most_8, &s, view(x, size), view(sum, size), Write::add);
      std::vector<double> partial(static_cast<std::size_t>(Kernel::chunks(size)));
      std::vector<T> ds{9, 9};
      Kernel::factor_backward<T>(stream, at_most_8, &s, view(dy, size), view(x, size), &ds[0], Write::overwrite,
                                 partial.data());
      Kernel::factor_backward<T>(stream, at_most_8, &s, view(dy, size), view(x, size), &ds[1], Write::add,
                                 partial.data());
      double exact = 0, terms = 0;
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        wrong += y[i] != by * x[i] || sum[i] != before[i] + by * x[i];
        double const here = static_cast<double>(dy[i]) * static_cast<double>(x[i]);
        exact += here, terms += std::abs(here);
      }
      CHECK(wrong == 0);
      // A product rounds once, and so do at most 256 / 8 additions to a lane and 8 of lanes; the factor and the last
      // product once more each.
      double const bound = 43 * static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * terms;
      CHECK(std::abs(static_cast<double>(ds[0]) - static_cast<double>(by) * exact) <= static_cast<double>(by) * bound);
      CHECK(ds[1] == 9 + ds[0]);
      if (one.empty()) one = ds;
      CHECK(ds == one);
    }
  }
}
