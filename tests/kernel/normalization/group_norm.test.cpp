// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/group_norm.hpp>

#include <doctest/doctest.h>

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
