// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/dropout.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::view;

TEST_CASE_TEMPLATE("dropout on CUDA has the host's bits, at any width, with and without padding", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Dropout<CudaSpace>")) return;
  ThreadPool pool;
  memory::CudaStream stream;
  for (Index width : {1, 7, 8, 9, 33, 64})
    for (Index length : {1, 5})
      for (double probability : {0.0, 0.3})
        for (auto write : {Write::overwrite, Write::add})
          for (bool padded : {false, true}) {
            std::vector<Index> const positions{3, Index{1} << 40, 0};
            std::vector<std::int32_t> const lengths =
                padded ? std::vector<std::int32_t>{static_cast<std::int32_t>(length), 0, 1}
                       : std::vector<std::int32_t>{};
            auto const x = lockstep_test::values<T>(3 * length * width, 1);
            auto y = lockstep_test::values<T>(3 * length * width, 2);
            auto const mask = kernel::DropoutMask::of(99, probability);
            OnDevice<Index> const device_positions(positions);
            OnDevice<std::int32_t> const device_lengths(lengths);
            OnDevice<T> const device_x(x), device_y(y);
            kernel::Dropout<CudaSpace>::apply<T>(
                stream.view(), mask,
                kernel::SequenceLayout<CudaSpace>::padded(length, device_lengths.view(lengths.size()),
                                                          device_positions.view(3)),
                device_x.view(3 * length, width), device_y.view(3 * length, width), write);
            kernel::Dropout<HostSpace>::apply<T>(
                memory::Stream<HostSpace>(pool), mask,
                kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, lengths.size()), view(positions, 3)),
                view(x, 3 * length, width), view(y, 3 * length, width), write);
            CHECK(device_y.values() == y);
          }
}
