// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/image_input.cuh>

#include <doctest/doctest.h>

#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::view;

TEST_CASE_TEMPLATE("image bytes on CUDA become the host's numbers", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::ImageInput<CudaSpace>")) return;
  ThreadPool pool(1);
  memory::CudaStream const stream;
  for (Index channels : {1, 3, 64})
    for (Index positions : {0, 1, 300}) {
      std::vector<std::uint8_t> bytes;
      for (Index i = 0; i < positions * channels; ++i) bytes.push_back(static_cast<std::uint8_t>(7 * i));
      std::vector<double> mean, deviation;
      for (Index c = 0; c < channels; ++c) {
        mean.push_back(0.4 + 0.01 * static_cast<double>(c));
        deviation.push_back(0.2 + 0.01 * static_cast<double>(c));
      }
      std::vector<T> y(bytes.size()),
          table(static_cast<std::size_t>(kernel::ImageInput<HostSpace>::table_elements(channels)));
      OnDevice<std::uint8_t> const device_bytes(bytes);
      OnDevice<T> const device_y(y);
      kernel::ImageInput<HostSpace>::normalize<T>(memory::Stream<HostSpace>(pool), view(bytes, positions, channels),
                                                  mean, deviation, view(y, positions, channels), table.data());
      kernel::ImageInput<CudaSpace>::normalize<T>(stream.view(), device_bytes.view(positions, channels), mean,
                                                  deviation, device_y.view(positions, channels), nullptr);
      CHECK(device_y.values() == y);
    }
}

TEST_CASE("more channels than a launch can pass are refused") {
  if (!lockstep_test::has_gpu("kernel::ImageInput<CudaSpace>")) return;
  memory::CudaStream const stream;
  std::vector<double> const many(65, 1.0);
  CHECK_THROWS_WITH_AS(kernel::ImageInput<CudaSpace>::normalize<float>(stream.view(), {nullptr, {0, 65}}, many, many,
                                                                       {nullptr, {0, 65}}, nullptr),
                       doctest::Contains("65 channels, but CUDA supports at most 64"), ShapeError);
}
