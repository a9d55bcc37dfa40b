// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/relu.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "values.hpp"
#include "view.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::Write;
using lockstep::kernel::Relu;
using lockstep::memory::Stream;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("relu and its gradient, element by element, at all sizes and in place", T, float, double) {
  for (int threads : {1, 3}) {
    ThreadPool pool(threads);
    Stream<HostSpace> const stream(pool);
    for (Index size : {0, 1, 31, 32, 33, 8191, 8192, 8193}) {
      auto const x = values<T>(size, 1), dy = values<T>(size, 2), before = values<T>(size, 3);
      auto y = x, dx = dy, sum = before;
      Relu<HostSpace>::forward<T>(stream, view(y, size), view(y, size));
      Relu<HostSpace>::backward<T>(stream, view(dx, size), view(y, size), view(dx, size), Write::overwrite);
      Relu<HostSpace>::backward<T>(stream, view(dy, size), view(y, size), view(sum, size), Write::add);
      Index wrong = 0;
      for (std::size_t i = 0; i < x.size(); ++i) {
        wrong += y[i] != (x[i] > 0 ? x[i] : T(0));
        wrong += dx[i] != (x[i] > 0 ? dy[i] : T(0));
        wrong += sum[i] != before[i] + (x[i] > 0 ? dy[i] : T(0));
      }
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("infinity passes, a nan stays, and zero has gradient zero") {
  constexpr auto infinity = std::numeric_limits<float>::infinity();
  std::vector<float> const x{infinity, -infinity, std::numeric_limits<float>::quiet_NaN(), 0.0F, -0.0F}, dy(5, 2.0F);
  std::vector<float> y(5), dx(5);
  ThreadPool pool(1);
  Stream<HostSpace> const stream(pool);
  Relu<HostSpace>::forward<float>(stream, view(x, 5), view(y, 5));
  Relu<HostSpace>::backward<float>(stream, view(dy, 5), view(y, 5), view(dx, 5), Write::overwrite);
  CHECK(y[0] == infinity);
  CHECK(y[1] == 0);
  CHECK(std::isnan(y[2]));
  CHECK(y[3] == 0);
  CHECK(dx == std::vector<float>{2, 0, 2, 0, 0});
}
