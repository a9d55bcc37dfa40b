// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/convolution/upsample.cuh>

#include <doctest/doctest.h>

#include "kernel/convolution/resampling_cases.hpp"
#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

TEST_CASE_TEMPLATE("nearest and linear upsampling on CUDA have the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::Upsample<CudaSpace>")) return;
  using Host = kernel::Upsample<HostSpace>;
  using Cuda = kernel::Upsample<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (kernel::UpsampleShape const& s : resampling_cases::upsample_shapes())
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
  for (kernel::UpsampleShape const& s : resampling_cases::linear_shapes())
    for (auto write : {Write::overwrite, Write::add}) {
      auto const in = s.rows * s.input_size(), out = s.rows * s.output_size();
      auto const x = values<T>(in, 1), dy = values<T>(out, 2);
      std::vector<T> y(static_cast<std::size_t>(out));
      auto dx = values<T>(in, 3);
      OnDevice<T> const device_x(x), device_dy(dy), device_y(y), device_dx(dx);
      Host::linear<T>(host, s, view(x, in), view(y, out));
      Host::linear_backward<T>(host, s, view(dy, out), view(dx, in), write);
      Cuda::linear<T>(stream.view(), s, device_x.view(in), device_y.view(out));
      Cuda::linear_backward<T>(stream.view(), s, device_dy.view(out), device_dx.view(in), write);
      CHECK(device_y.values() == y);
      CHECK(device_dx.values() == dx);
    }
}
