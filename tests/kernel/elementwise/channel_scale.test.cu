// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/channel_scale.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("channel factors on CUDA have the host's bits, and so have their gradients' sums", T, float,
                   double) {
  if (!lockstep_test::has_gpu("kernel::ChannelScale<CudaSpace>")) return;
  using Host = kernel::ChannelScale<HostSpace>;
  using Cuda = kernel::ChannelScale<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 63, 200})
    for (Index channels : {1, 3, 32, 33}) {
      auto const x = values<T>(rows * channels, 1), dy = values<T>(rows * channels, 2),
                 factors = values<T>(channels, 3);
      auto y = values<T>(rows * channels, 4), gradient = values<T>(channels, 5);
      std::vector<T> partial(static_cast<std::size_t>(Host::partial_elements(rows, channels)));
      OnDevice<T> const device_x(x), device_dy(dy), device_factors(factors), device_y(y), device_gradient(gradient),
          device_partial(values<T>(Cuda::partial_elements(rows, channels), 6));
      for (auto write : {Write::add, Write::overwrite}) {
        Host::run<T>(host, view(factors, channels), view(x, rows, channels), view(y, rows, channels), write);
        Cuda::run<T>(stream.view(), device_factors.view(channels), device_x.view(rows, channels),
                     device_y.view(rows, channels), write);
        CHECK(device_y.values() == y);
        Host::factors_backward<T>(host, view(dy, rows, channels), view(x, rows, channels), view(gradient, channels),
                                  write, partial.data());
        Cuda::factors_backward<T>(stream.view(), device_dy.view(rows, channels), device_x.view(rows, channels),
                                  device_gradient.view(channels), write,
                                  device_partial.view(Cuda::partial_elements(rows, channels)).data);
        CHECK(same_sums(device_gradient.values(), gradient, static_cast<double>(rows + 2)));
      }
    }
}
