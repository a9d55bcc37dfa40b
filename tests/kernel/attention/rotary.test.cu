// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/attention/rotary.cuh>

#include <doctest/doctest.h>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::TwinLayout;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("rotary positions on CUDA equal the host's within rounding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Rotary<CudaSpace>")) return;
  using Host = kernel::Rotary<HostSpace>;
  using Cuda = kernel::Rotary<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  Index const width = 6, all = 3 * width;
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : {std::vector<std::int32_t>{}, {5, 0, 1, 9}}) {
      TwinLayout const layout{kind, lengths};
      auto const slots = layout.slots(), length = layout.host().length;
      std::vector<T> table(static_cast<std::size_t>(length * width));
      auto x = values<T>(slots * all, 1);
      OnDevice<T> const device_table(table), device_x(x);
      Host::fill<T>(host, 100, 3, view(table, length, width));
      Cuda::fill<T>(stream.view(), 100, 3, device_table.view(length, width));
      CHECK(same_sums(device_table.values(), table, 2));
      for (auto rotation : {kernel::Rotation::forward, kernel::Rotation::forward, kernel::Rotation::inverse}) {
        Host::run<T>(host, layout.host(), view(table, length, width), rotation, view(x, slots, all));
        Cuda::run<T>(stream.view(), layout.device(), device_table.view(length, width), rotation,
                     device_x.view(slots, all));
      }
      CHECK(same_sums(device_x.values(), x, 4));
    }
}
