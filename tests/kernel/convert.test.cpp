// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convert.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <numeric>

#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::view;

TEST_CASE_TEMPLATE("elements keep their values in another type", T, float, double) {
  for (Index n : {0, 1, 33, 20'000}) {
    std::vector<std::uint8_t> bytes(static_cast<std::size_t>(n));
    std::iota(bytes.begin(), bytes.end(), std::uint8_t{0});
    for (int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::vector<T> to(bytes.size(), T{-1});
      kernel::Convert<HostSpace>::run<T, std::uint8_t>(memory::Stream<HostSpace>(pool), view(bytes, n), view(to, n));
      CHECK(std::equal(to.begin(), to.end(), bytes.begin(), bytes.end()));
    }
  }
}
