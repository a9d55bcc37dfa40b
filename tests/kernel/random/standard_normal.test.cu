// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/standard_normal.cuh>

#include <doctest/doctest.h>

#include <cmath>

#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::view;

TEST_CASE_TEMPLATE("normal numbers on CUDA equal the host's within rounding, with and without padding", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::StandardNormal<CudaSpace>")) return;
  ThreadPool pool;
  memory::CudaStream const stream;
  kernel::DropoutMask const mask{99};
  std::vector<Index> const positions{3, Index{1} << 40, 0};
  OnDevice<Index> const device_positions(positions);
  for (Index width : {1, 3, 4, 5, 33, 64})
    for (Index length : {1, 5})
      for (bool padded : {false, true}) {
        std::vector<std::int32_t> const lengths =
            padded ? std::vector<std::int32_t>{static_cast<std::int32_t>(length), 0, 1} : std::vector<std::int32_t>{};
        std::vector<T> y(static_cast<std::size_t>(3 * length * width), T{-7});
        OnDevice<std::int32_t> const device_lengths(lengths);
        OnDevice<T> const device_y(y);
        kernel::StandardNormal<CudaSpace>::fill<T>(
            stream.view(), mask,
            kernel::SequenceLayout<CudaSpace>::padded(length, device_lengths.view(lengths.size()),
                                                      device_positions.view(3)),
            device_y.view(3 * length, width));
        kernel::StandardNormal<HostSpace>::fill<T>(
            memory::Stream<HostSpace>(pool), mask,
            kernel::SequenceLayout<HostSpace>::padded(length, view(lengths, lengths.size()), view(positions, 3)),
            view(y, 3 * length, width));
        auto const got = device_y.values();
        bool close = true;  // a dozen roundings, of a device that fuses some of them
        for (std::size_t i = 0; i < y.size(); ++i)
          close =
              close && std::abs(static_cast<double>(got[i] - y[i])) <= 0x1p-19 * std::abs(static_cast<double>(y[i]));
        CAPTURE(width);
        CHECK(close);
      }
}
