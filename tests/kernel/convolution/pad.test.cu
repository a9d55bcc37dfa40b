// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/pad.cuh>

#include <doctest/doctest.h>

#include "kernel/convolution/resampling_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::PadMode;
using kernel::PadShape;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("padding on CUDA has the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Pad<CudaSpace>")) return;
  using Host = kernel::Pad<HostSpace>;
  using Cuda = kernel::Pad<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (PadShape const& s : resampling_cases::pad_shapes())
    for (auto write : {Write::overwrite, Write::add}) {
      auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
      auto const x = values<T>(in, 1), dy = values<T>(out, 2);
      std::vector<T> y(static_cast<std::size_t>(out));
      auto dx = values<T>(in, 3);
      OnDevice<T> const device_x(x), device_dy(dy), device_y(y), device_dx(dx);
      Host::forward<T>(host, s, view(x, in), view(y, out));
      Host::backward<T>(host, s, view(dy, out), view(dx, in), write);
      Cuda::forward<T>(stream.view(), s, device_x.view(in), device_y.view(out));
      Cuda::backward<T>(stream.view(), s, device_dy.view(out), device_dx.view(in), write);
      CHECK(device_y.values() == y);
      CHECK(device_dx.values() == dx);
    }
}

TEST_CASE("padding beyond an axis is refused on CUDA, too") {
  if (!lockstep_test::has_gpu("kernel::Pad<CudaSpace>")) return;
  memory::CudaStream const stream;
  PadShape const s{.rows = 1, .extent = {1, 1, 3}, .before = {0, 0, 4}};
  CHECK_THROWS_WITH_AS(kernel::Pad<CudaSpace>::forward<float>(stream.view(), s, {nullptr, {3}}, {nullptr, {7}}),
                       doctest::Contains("circular padding must be at most the extent"), ShapeError);
}
