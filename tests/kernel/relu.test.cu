// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/relu.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("relu and its backward on CUDA have the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Relu<CudaSpace>")) return;
  ThreadPool pool;
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index n : {0, 1, 257, 5000}) {
    auto const x = values<T>(n, 1), dy = values<T>(n, 2);
    auto y = x, dx = values<T>(n, 3);
    OnDevice<T> const device_x(x), device_dy(dy), device_y(y), device_dx(dx);
    kernel::Relu<CudaSpace>::forward<T>(stream.view(), device_x.view(n), device_y.view(n));
    kernel::Relu<HostSpace>::forward<T>(host, view(x, n), view(y, n));
    CHECK(device_y.values() == y);
    for (auto write : {Write::add, Write::overwrite}) {
      kernel::Relu<CudaSpace>::backward<T>(stream.view(), device_dy.view(n), device_y.view(n), device_dx.view(n),
                                           write);
      kernel::Relu<HostSpace>::backward<T>(host, view(dy, n), view(y, n), view(dx, n), write);
      CHECK(device_dx.values() == dx);
    }
  }
}
