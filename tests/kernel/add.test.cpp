// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/add.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "values.hpp"
#include "view.hpp"

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::Write;
using lockstep::kernel::Add;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("sums and their gradients", T, float, double) {
  lockstep::ThreadPool pool(2);
  lockstep::memory::Stream<HostSpace> const stream(pool);
  for (Index n : {0, 1, 31, 33, 20'000}) {
    auto const x = values<T>(n, 1), y = values<T>(n, 2);
    std::vector<T> z(x.size(), std::numeric_limits<T>::quiet_NaN()), dx = z;
    Add<HostSpace>::forward<T>(stream, view(x, n), view(y, n), view(z, n));
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(z[i] == x[i] + y[i]);
    Add<HostSpace>::backward<T>(stream, view(z, n), view(dx, n), Write::overwrite);
    CHECK(dx == z);
    Add<HostSpace>::backward<T>(stream, view(z, n), view(dx, n), Write::add);
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(dx[i] == 2 * z[i]);
    Add<HostSpace>::forward<T>(stream, view(x, n), view(dx, n), view(dx, n));  // in place
    for (std::size_t i = 0; i < x.size(); ++i) CHECK(dx[i] == x[i] + 2 * z[i]);
  }
}
