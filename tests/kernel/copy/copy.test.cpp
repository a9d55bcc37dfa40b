// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/copy.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>

using namespace lockstep;

TEST_CASE("elements are copied unchanged, between separate and overlapping ranges, and in place") {
  ThreadPool pool(1);
  memory::Stream<HostSpace> const stream(pool);
  for (Index count : {0, 1, 31, 32, 33})
    for (Index from : {0, 3, 40})
      for (Index to : {0, 3, 40}) {
        std::vector<double> x(80);
        std::iota(x.begin(), x.end(), 1.0);
        auto const before = x;
        kernel::Copy<HostSpace>::run(stream, x.data() + from, x.data() + to, count);
        bool moved = true;
        for (Index i = 0; i < 80; ++i) {
          bool const target = i >= to && i < to + count;
          moved =
              moved && x[static_cast<std::size_t>(i)] == before[static_cast<std::size_t>(target ? i - to + from : i)];
        }
        CHECK(moved);
      }
  kernel::Copy<HostSpace>::run<float>(stream, nullptr, nullptr, 0);
}
