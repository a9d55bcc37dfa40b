// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/log_softmax.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("log softmax on CUDA equals the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::LogSoftmax<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 31, 65})
    for (Index width : {1, 33, 200})
      for (auto write : {Write::overwrite, Write::add}) {
        auto const x = values<T>(rows * width, 1, 90), dy = values<T>(rows * width, 2);
        auto y = x, dx = values<T>(rows * width, 3);
        OnDevice<T> const device_x(x), device_dy(dy), device_y(x), device_dx(dx);
        kernel::LogSoftmax<HostSpace>::forward<T>(host, view(x, rows, width), view(y, rows, width));
        kernel::LogSoftmax<HostSpace>::backward<T>(host, view(dy, rows, width), view(std::as_const(y), rows, width),
                                                   view(dx, rows, width), write);
        kernel::LogSoftmax<CudaSpace>::forward<T>(stream.view(), device_x.view(rows, width),
                                                  device_y.view(rows, width));
        kernel::LogSoftmax<CudaSpace>::backward<T>(stream.view(), device_dy.view(rows, width),
                                                   device_y.view(rows, width), device_dx.view(rows, width), write);
        CHECK(same_sums(device_y.values(), y, 16));  // |y| is below 256, of which a unit in the last place is 16^2 / 2
        CHECK(same_sums(device_dx.values(), dx, 8));
      }
}
