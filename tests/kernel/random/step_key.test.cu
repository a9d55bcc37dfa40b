// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/random/dropout.cuh>
#include <lockstep/kernel/random/step_key.cuh>
#include <lockstep/memory/cuda_graph.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::view;

TEST_CASE("a recorded mask follows the micro-batch's key, with the host's bits") {
  if (!lockstep_test::has_gpu("kernel::StepKey<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  kernel::StepKey<CudaSpace> key;
  kernel::StepKey<HostSpace> host_key;
  std::vector<Index> const positions{3, Index{1} << 40};
  auto const x = lockstep_test::values<float>(2 * 33, 1);
  std::vector<float> expected(x.size());
  OnDevice<Index> const device_positions(positions);
  OnDevice<float> const device_x(x), device_y(expected);
  memory::CudaGraph const graph(stream.view(), [&] {
    kernel::Dropout<CudaSpace>::apply<float>(stream.view(), key.mask(4, 30'000),
                                             kernel::SequenceLayout<CudaSpace>::vectors(2, device_positions.view(2)),
                                             device_x.view(2, 33), device_y.view(2, 33), Write::overwrite);
  });
  for (std::uint64_t step : {1u, 2u, 1u}) {
    key.set(stream.view(), step);
    graph.launch(stream.view());
    memory::Stream<HostSpace> const host(pool);
    host_key.set(host, step);
    kernel::Dropout<HostSpace>::apply<float>(host, host_key.mask(4, 30'000),
                                             kernel::SequenceLayout<HostSpace>::vectors(2, view(positions, 2)),
                                             view(x, 2, 33), view(expected, 2, 33), Write::overwrite);
    CHECK(device_y.values() == expected);
  }
}
