// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/gelu.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("gelu and its slope on CUDA are the host's, but for roundings", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Gelu<CudaSpace>")) return;
  ThreadPool pool;
  memory::CudaStream const stream;
  // The host's integral is within 6 units of 2^-24 and the device's erfcf within 5 of its own half, the density within
  // 10; x enters as a factor of at most 6 where either is not 0 or 1, and every product rounds once.
  double const unit = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2;
  for (Index n : {0, 1, 31, 257, 5000}) {
    auto const x = values<T>(n, 1, 6);
    std::vector<T> y(x.size()), slope(x.size());
    OnDevice<T> const device_x(x), device_y(y), device_slope(slope), device_value(y);
    kernel::Gelu<CudaSpace>::forward<T>(stream.view(), device_x.view(n), device_y.view(n), device_slope.view(n));
    kernel::Gelu<CudaSpace>::forward<T>(stream.view(), device_x.view(n), device_value.view(n));
    kernel::Gelu<HostSpace>::forward<T>(memory::Stream<HostSpace>(pool), view(x, n), view(y, n), view(slope, n));
    auto const got = device_y.values(), got_slope = device_slope.values();
    CHECK(device_value.values() == got);
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      auto const error = std::abs(static_cast<double>(got[i]) - static_cast<double>(y[i]));
      auto const slope_error = std::abs(static_cast<double>(got_slope[i]) - static_cast<double>(slope[i]));
      auto const magnitude = std::abs(static_cast<double>(x[i]));
      worst =
          std::max({worst, error / (unit * 13 * (magnitude + 0x1p-10)), slope_error / (unit * (13 + 12 * magnitude))});
    }
    CHECK(worst <= 1);
  }
}

TEST_CASE_TEMPLATE("gelu's backward on CUDA has the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Gelu<CudaSpace>")) return;
  ThreadPool pool;
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257, 5000}) {
    auto const dy = values<T>(n, 2), slope = values<T>(n, 3);
    auto dx = values<T>(n, 4);
    OnDevice<T> const device_dy(dy), device_slope(slope), device_dx(dx);
    for (auto write : {Write::add, Write::overwrite}) {
      kernel::Gelu<CudaSpace>::backward<T>(stream.view(), device_dy.view(n), device_slope.view(n), device_dx.view(n),
                                           write);
      kernel::Gelu<HostSpace>::backward<T>(memory::Stream<HostSpace>(pool), view(dy, n), view(slope, n), view(dx, n),
                                           write);
      CHECK(device_dx.values() == dx);
    }
  }
}
