// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/reduction/dot_by_row.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("row-wise dot products on CUDA equal the host's, except for the order of sums", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::DotByRow<CudaSpace>")) return;
  using Host = kernel::DotByRow<HostSpace>;
  using Cuda = kernel::DotByRow<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 31, 65})
    for (Index width : {1, 33, 200})
      for (auto write : {Write::overwrite, Write::add}) {
        auto const a = values<T>(rows * width, 1), b = values<T>(rows * width, 2), dz = values<T>(rows, 3);
        auto z = dz, da = a;
        OnDevice<T> const device_a(a), device_b(b), device_dz(dz), device_z(z), device_da(da);
        Host::forward<T>(host, view(a, rows, width), view(b, rows, width), view(z, rows));
        Host::backward<T>(host, view(dz, rows), view(b, rows, width), view(da, rows, width), write);
        Cuda::forward<T>(stream.view(), device_a.view(rows, width), device_b.view(rows, width), device_z.view(rows));
        Cuda::backward<T>(stream.view(), device_dz.view(rows), device_b.view(rows, width), device_da.view(rows, width),
                          write);
        CHECK(same_sums(device_z.values(), z, static_cast<double>(width)));
        CHECK(same_sums(device_da.values(), da, 2));
      }
}
