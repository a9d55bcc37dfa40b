// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/sample_dropout.cuh>

#include <doctest/doctest.h>

#include "kernel/device_layout.hpp"
#include "kernel/values.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::TwinLayout;
using lockstep_test::view;

TEST_CASE_TEMPLATE("dropout of samples on CUDA has the host's bits, at any width, padded and ragged", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::SampleDropout<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (auto kind : {TwinLayout::Kind::padded, TwinLayout::Kind::ragged})
    for (auto const& lengths : lockstep_test::some_lengths)
      for (Index width : {1, 7, 8, 33, 64})
        for (double probability : {0.0, 0.5}) {
          TwinLayout const twin(kind, lengths);
          auto const slots = twin.slots();
          auto const x = lockstep_test::values<T>(slots * width, 1);
          auto y = lockstep_test::values<T>(slots * width, 2);
          auto const mask = kernel::DropoutMask::of(99, probability);
          OnDevice<T> const device_x(x), device_y(y);
          for (auto write : {Write::add, Write::overwrite}) {
            kernel::SampleDropout<CudaSpace>::apply<T>(stream.view(), mask, twin.device(), device_x.view(slots, width),
                                                       device_y.view(slots, width), write);
            kernel::SampleDropout<HostSpace>::apply<T>(memory::Stream<HostSpace>(pool), mask, twin.host(),
                                                       view(x, slots, width), view(y, slots, width), write);
            CHECK(device_y.values() == y);
          }
        }
}
