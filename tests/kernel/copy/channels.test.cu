// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/channels.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("columns are copied on CUDA as on the host", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Channels<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  Index const all = 40, first = 3;
  for (Index rows : {0, 1, 31, 200})
    for (Index width : {0, 1, 33}) {
      auto x = values<T>(rows * width, 1), y = values<T>(rows * all, 2);
      OnDevice<T> const device_x(x), device_y(y);
      for (auto write : {Write::add, Write::overwrite}) {
        kernel::Channels<HostSpace>::put<T>(host, view(x, rows, width), first, view(y, rows, all));
        kernel::Channels<CudaSpace>::put<T>(stream.view(), device_x.view(rows, width), first, device_y.view(rows, all));
        CHECK(device_y.values() == y);
        for (Index from : {Index{1}, all - width}) {
          kernel::Channels<HostSpace>::take<T>(host, view(y, rows, all), from, view(x, rows, width), write);
          kernel::Channels<CudaSpace>::take<T>(stream.view(), device_y.view(rows, all), from,
                                               device_x.view(rows, width), write);
          CHECK(device_x.values() == x);
          kernel::Channels<HostSpace>::take_backward<T>(host, view(x, rows, width), from, view(y, rows, all), write);
          kernel::Channels<CudaSpace>::take_backward<T>(stream.view(), device_x.view(rows, width), from,
                                                        device_y.view(rows, all), write);
          CHECK(device_y.values() == y);
        }
      }
    }
}
