// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/sum_of_squares.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::view;

TEST_CASE_TEMPLATE("the sum of squares on CUDA equals the host's, except for the order", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::SumOfSquares<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (Index n : {0, 1, 255, 256, 4095, 4096, 4097, 30'000}) {
    auto const x = lockstep_test::values<T>(n, 1);
    OnDevice<T> const device_x(x);
    auto const run = [&] { return kernel::SumOfSquares<CudaSpace>::run<T>(stream.view(), device_x.view(n)); };
    auto const got = run();
    auto const expected = kernel::SumOfSquares<HostSpace>::run<T>(memory::Stream<HostSpace>(pool), view(x, n));
    // All terms are positive: either side rounds each of its n additions by at most half an epsilon of the sum.
    CHECK(std::abs(got - expected) <= static_cast<double>(n) * std::numeric_limits<double>::epsilon() * expected);
    CHECK(run() == got);
  }
}

TEST_CASE("a non-finite element shows in the sum of squares on CUDA") {
  if (!lockstep_test::has_gpu("kernel::SumOfSquares<CudaSpace>")) return;
  memory::CudaStream const stream;
  for (float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    auto x = lockstep_test::values<float>(5000, 1);
    x[4321] = bad;
    OnDevice<float> const device_x(x);
    CHECK_FALSE(std::isfinite(kernel::SumOfSquares<CudaSpace>::run<float>(stream.view(), device_x.view(5000))));
  }
}

TEST_CASE("the largest floats do not overflow the sum of squares on CUDA") {
  if (!lockstep_test::has_gpu("kernel::SumOfSquares<CudaSpace>")) return;
  memory::CudaStream const stream;
  OnDevice<float> const x(std::vector<float>(100, std::numeric_limits<float>::max()));
  CHECK(std::isfinite(kernel::SumOfSquares<CudaSpace>::run<float>(stream.view(), x.view(100))));
}
