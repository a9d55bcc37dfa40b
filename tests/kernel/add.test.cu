// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/add.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("sums on CUDA have the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Add<CudaSpace>")) return;
  ThreadPool pool;
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index n : {0, 1, 31, 255, 256, 257, 20'000}) {
    auto const x = values<T>(n, 1), y = values<T>(n, 2);
    auto z = values<T>(n, 3);
    OnDevice<T> const device_x(x), device_y(y), device_z(z);
    kernel::Add<CudaSpace>::forward<T>(stream.view(), device_x.view(n), device_y.view(n), device_z.view(n));
    kernel::Add<HostSpace>::forward<T>(host, view(x, n), view(y, n), view(z, n));
    CHECK(device_z.values() == z);
    for (auto write : {Write::overwrite, Write::add}) {
      kernel::Add<CudaSpace>::backward<T>(stream.view(), device_x.view(n), device_z.view(n), write);
      kernel::Add<HostSpace>::backward<T>(host, view(x, n), view(z, n), write);
      CHECK(device_z.values() == z);
    }
  }
}
