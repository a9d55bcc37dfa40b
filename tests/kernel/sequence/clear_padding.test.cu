// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/clear_padding.cuh>

#include <doctest/doctest.h>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("padding on CUDA is cleared as on the host", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::ClearPadding<CudaSpace>")) return;
  using Host = kernel::ClearPadding<HostSpace>;
  using Cuda = kernel::ClearPadding<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  Index const width = 7;
  for (auto const& lengths : {std::vector<std::int32_t>{}, {5, 0, 1, 9}})
    for (auto write : {Write::overwrite, Write::add}) {
      TwinLayout const layout{TwinLayout::Kind::padded, lengths};
      auto const slots = layout.slots(), rows = layout.rows();
      auto const x = values<T>(slots * width, 1);
      auto y = values<T>(slots * width, 2);
      std::vector<std::int32_t> window_count(static_cast<std::size_t>(rows));
      OnDevice<T> const device_x(x), device_y(y);
      OnDevice<std::int32_t> const device_counts(window_count);
      Host::run<T>(host, layout.host(), view(x, slots, width), view(y, slots, width), write);
      Cuda::run<T>(stream.view(), layout.device(), device_x.view(slots, width), device_y.view(slots, width), write);
      CHECK(device_y.values() == y);
      Host::window_counts(host, layout.host().lengths, 3, 2, 2, 4, view(window_count, rows));
      Cuda::window_counts(stream.view(), layout.device().lengths, 3, 2, 2, 4, device_counts.view(rows));
      CHECK(device_counts.values() == window_count);
    }
}
