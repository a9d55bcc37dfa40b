// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/elementwise/channel_bias.cuh>

#include <doctest/doctest.h>

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include <lockstep/core/float16.hpp>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::same_sums;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("a bias on CUDA equals the host's, and its gradient within rounding", T, float, double) {
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

TEST_CASE_TEMPLATE("a bias's gradient on CUDA: every division of columns among threads", T, float, bfloat16, float16) {
  if (!lockstep_test::has_gpu("kernel::ChannelBias<CudaSpace>")) return;
  using Cuda = kernel::ChannelBias<CudaSpace>;
  memory::CudaStream const stream;
  std::pair<Index, Index> const shapes[] = {{1, 64},    {3, 100},   {2000, 8}, {2000, 100},
                                            {700, 128}, {130, 768}, {65, 4096}};
  for (auto const& shape : shapes) {
    auto const rows = shape.first, channels = shape.second;
    CAPTURE(rows);
    CAPTURE(channels);
    auto const numbers = values<float>(rows * channels, 2);
    std::vector<T> const dy(numbers.begin(), numbers.end());
    std::vector<float> const before(static_cast<std::size_t>(channels), 1);
    auto const partials = static_cast<std::size_t>(Cuda::partial_elements(rows, channels));
    auto const sums_of = [&](Index shift) {  // at an address that is not aligned
      std::vector<T> shifted(static_cast<std::size_t>(shift));
      shifted.insert(shifted.end(), dy.begin(), dy.end());
      OnDevice<T> const device_dy(shifted);
      OnDevice<float> const dbias(before), partial(std::vector<float>(partials, 7));
      TensorView<T, 2, CudaSpace> const matrix{device_dy.view(0).data + shift, {rows, channels}};
      Cuda::backward<T>(stream.view(), matrix, dbias.view(channels), Write::add, partial.view(0).data);
      return dbias.values();
    };
    auto const got = sums_of(0);
    bool good = true;
    for (std::size_t c = 0; c < got.size(); ++c) {
      double sum = 1, magnitude = 1;
      for (std::size_t i = c; i < dy.size(); i += got.size()) {
        sum += static_cast<double>(static_cast<float>(dy[i]));
        magnitude += std::abs(static_cast<double>(static_cast<float>(dy[i])));
      }
      good = good && std::abs(static_cast<double>(got[c]) - sum) <= static_cast<double>(rows + 2) * 0x1p-24 * magnitude;
    }
    CHECK(good);
    CHECK(sums_of(1) == got);
  }
}
