// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convert.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <numeric>

#include <lockstep/core/bfloat16.hpp>

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

TEST_CASE("bfloat16 is rounded to nearest, also where it is added to, and widens exactly") {
  for (Index n : {0, 1, 31, 32, 33, 8192, 8193}) {
    CAPTURE(n);
    std::vector<float> x(static_cast<std::size_t>(n)), again(x.size());
    for (std::size_t i = 0; i < x.size(); ++i)
      x[i] = std::ldexp(1 + static_cast<float>(i % 509) / 509, int(i % 40) - 20);
    std::vector<bfloat16> to(x.size(), bfloat16(7.0f)), before;
    ThreadPool pool(3);
    memory::Stream<HostSpace> const stream(pool);
    kernel::Convert<HostSpace>::run<bfloat16, float>(stream, view(x, n), view(to, n), Write::overwrite);
    before = to;
    kernel::Convert<HostSpace>::run<float, bfloat16>(stream, view(to, n), view(again, n));
    kernel::Convert<HostSpace>::run<bfloat16, float>(stream, view(x, n), view(to, n), Write::add);
    bool right = true;
    for (std::size_t i = 0; i < x.size(); ++i) {
      right = right && std::abs(static_cast<float>(before[i]) - x[i]) <= x[i] * 0x1p-8f;  // half of the last of 8 bits
      right = right && again[i] == static_cast<float>(before[i]);
      right = right && to[i].bits == bfloat16(static_cast<float>(before[i]) + x[i]).bits;
    }
    CHECK(right);
  }
}
