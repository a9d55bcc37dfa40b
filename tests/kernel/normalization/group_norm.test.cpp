// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/group_norm.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include <lockstep/core/thread_pool.hpp>

#include "group_norm_case.hpp"

using namespace lockstep;
using Kernel = kernel::GroupNorm<HostSpace>;

TEST_CASE_TEMPLATE("values and gradients equal the definition's, at any size and for any number of threads", T, float,
                   double) {
  for (auto const& c : lockstep_test::GroupNormCase<T>::some()) {
    auto const& s = c.shape;
    std::vector<std::vector<T>> first;
    for (int const threads : {1, 3}) {
      ThreadPool pool(threads);
      memory::Stream<HostSpace> const stream(pool);
      auto const per_channel = static_cast<std::size_t>(s.rows * s.channels);
      std::vector<T> mean(per_channel), reciprocal(per_channel), y(c.x.size()),
          dx = c.before, dweight = c.gradient_before(), dbias = dweight,
          partial(static_cast<std::size_t>(Kernel::partial_elements(s)));
      typename Kernel::template Statistics<T> const statistics{mean.data(), reciprocal.data()};
      Kernel::forward<T>(stream, s, c.x.data(), 1e-5, statistics, c.weight.data(), c.bias.data(), c.activation,
                         y.data(), partial.data());
      Kernel::backward<T>(stream, s, c.dy.data(), c.x.data(), statistics, c.weight.data(), c.bias.data(), c.activation,
                          dx.data(), c.write, dweight.data(), c.write, dbias.data(), c.write, partial.data());
      CHECK(c.off(y, c.y) <= 16);
      CHECK(c.off(dx, c.dx) <= 16);
      CHECK(c.off(dweight, c.dweight) <= 16);
      CHECK(c.off(dbias, c.dbias) <= 16);
      std::vector<std::vector<T>> const found{y, dx, dweight, dbias};
      if (threads == 1) first = found;
      CHECK(found == first);
    }
  }
}

TEST_CASE_TEMPLATE("a constant sample of any size becomes the bias", T, float, double) {
  kernel::GroupNormShape const s{.rows = 1, .positions = 16384, .channels = 1, .groups = 1};
  ThreadPool pool(1);
  std::vector<T> const weight{2}, bias{3};
  for (double const value : {0.0, 0.1, 3e7, 1e8, -1.7e9, 1e15}) {
    CAPTURE(value);
    std::vector<T> const x(16384, static_cast<T>(value));
    std::vector<T> y(x.size()), mean(1), reciprocal(1), partial(static_cast<std::size_t>(Kernel::partial_elements(s)));
    Kernel::forward<T>(memory::Stream<HostSpace>(pool), s, x.data(), 1e-5, {mean.data(), reciprocal.data()},
                       weight.data(), bias.data(), kernel::Activation::none, y.data(), partial.data());
    CHECK(mean[0] == static_cast<T>(value));
    CHECK(reciprocal[0] == static_cast<T>(1 / std::sqrt(1e-5)));
    CHECK(y.front() == 3);
    CHECK(y.back() == 3);
  }
}
