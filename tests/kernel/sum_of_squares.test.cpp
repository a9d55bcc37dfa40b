// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <vector>
#include <lockstep/kernel/sum_of_squares.hpp>

using lockstep::HostSpace;
using lockstep::Index;

TEST_CASE("integers are summed exactly, whatever the size and the number of threads") {
  for (Index count : {0, 1, 31, 32, 33, 4095, 4096, 4097, 1'100'000}) {
    std::vector<float> x(static_cast<std::size_t>(count));
    double expected = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i % 61);
      expected += static_cast<double>(x[i]) * x[i];  // below 2^53: every partial sum is exact
    }
    for (int threads : {1, 2, 3}) {
      lockstep::ThreadPool pool(threads);
      CHECK(lockstep::kernel::SumOfSquares<HostSpace>::run<float>(lockstep::memory::Stream<HostSpace>(pool),
                                                                  {x.data(), {count}}) == expected);
    }
  }
}
