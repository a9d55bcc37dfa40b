// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/copy/permute.cuh>

#include <doctest/doctest.h>

#include "kernel/copy/permute_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("permuted axes on CUDA have the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Permute<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (auto const& each : permute_cases::cases())
    for (auto write : {Write::overwrite, Write::add}) {
      auto const s = each.shape();
      auto const x = values<T>(s.size(), 1);
      auto y = values<T>(s.size(), 2);
      OnDevice<T> const device_x(x), device_y(y);
      kernel::Permute<HostSpace>::run<T>(host, s, view(x, s.size()), view(y, s.size()), write);
      kernel::Permute<CudaSpace>::run<T>(stream.view(), s, device_x.view(s.size()), device_y.view(s.size()), write);
      CHECK(device_y.values() == y);
    }
}
