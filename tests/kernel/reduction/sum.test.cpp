// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum.hpp>

#include <doctest/doctest.h>

#include <vector>

#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;

TEST_CASE("a reduction is the sum in order; an empty one is zero") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  std::vector<double> const x{1e16, 1, -1e16, 1};
  double total = -1;
  kernel::Sum<HostSpace>::run(stream, view(x, 4), &total);
  CHECK(total == 1);  // 1e16 + 1 rounds to 1e16: the order shows
  kernel::Sum<HostSpace>::run(stream, view(x, 0), &total);
  CHECK(total == 0);
}
