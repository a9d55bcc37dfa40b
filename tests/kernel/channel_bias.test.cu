// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/channel_bias.cuh>

#include <doctest/doctest.h>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("a bias on CUDA is the host's, its gradient but for roundings", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::ChannelBias<CudaSpace>")) return;
  using Host = kernel::ChannelBias<HostSpace>;
  using Cuda = kernel::ChannelBias<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (Index rows : {0, 1, 63, 200})
    for (Index channels : {1, 33})
      for (auto write : {Write::overwrite, Write::add}) {
        auto const bias = values<T>(channels, 1), dy = values<T>(rows * channels, 2);
        auto y = values<T>(rows * channels, 3), dbias = values<T>(channels, 4);
        std::vector<T> partial(static_cast<std::size_t>(Host::partial_elements(rows, channels)));
        OnDevice<T> const device_bias(bias), device_dy(dy), device_y(y), device_dbias(dbias),
            device_partial(values<T>(Cuda::partial_elements(rows, channels), 5));
        Host::forward<T>(host, view(bias, channels), view(y, rows, channels));
        Host::backward<T>(host, view(dy, rows, channels), view(dbias, channels), write, partial.data());
        Cuda::forward<T>(stream.view(), device_bias.view(channels), device_y.view(rows, channels));
        Cuda::backward<T>(stream.view(), device_dy.view(rows, channels), device_dbias.view(channels), write,
                          device_partial.view(Cuda::partial_elements(rows, channels)).data);
        CHECK(device_y.values() == y);
        CHECK(same_sums(device_dbias.values(), dbias, static_cast<double>(rows + 2)));
      }
}
