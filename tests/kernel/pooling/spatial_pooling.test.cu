// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/pooling/spatial_pooling.cuh>

#include <doctest/doctest.h>

#include <cstddef>
#include <limits>
#include <tuple>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

using namespace lockstep;
using kernel::ConvolutionShape;
using kernel::PoolingShape;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

namespace {

std::vector<PoolingShape> shapes() {
  std::vector<ConvolutionShape> const windows{
      {.rows = 0, .inputs = 3, .extent = {1, 4, 4}, .kernel = {1, 2, 2}, .stride = {1, 2, 2}},
      {.rows = 0, .inputs = 3, .extent = {1, 1, 0}, .kernel = {1, 1, 2}},
      {.rows = 2, .inputs = 1, .extent = {1, 1, 1}},
      {.rows = 2, .inputs = 5, .extent = {1, 1, 33}, .kernel = {1, 1, 3}, .stride = {1, 1, 2}, .padding = {0, 0, 1}},
      {.rows = 1, .inputs = 2, .extent = {5, 6, 7}, .kernel = {2, 3, 3}, .stride = {2, 1, 2}, .padding = {1, 1, 1}},
      {.rows = 2,
       .inputs = 3,
       .extent = {4, 6, 5},
       .kernel = {2, 3, 3},
       .stride = {2, 2, 1},
       .padding = {1, 1, 0},
       .padding_after = {1, 2, 0}},
      {.rows = 3, .inputs = 4, .extent = {1, 9, 8}, .kernel = {1, 2, 3}, .stride = {1, 3, 4}}};
  std::vector<PoolingShape> out(windows.begin(), windows.end());
  for (auto const& [rows, extent, adaptive] : {std::tuple<Index, Extents<3>, Extents<3>>{2, {1, 10, 10}, {0, 7, 7}},
                                               {1, {3, 4, 5}, {2, 6, 5}},
                                               {3, {1, 1, 9}, {0, 0, 1}},
                                               {0, {1, 1, 0}, {0, 0, 2}}}) {
    PoolingShape shape = ConvolutionShape{.rows = rows, .inputs = 3, .extent = extent};
    for (std::size_t axis = 0; axis < 3; ++axis)
      if (adaptive[axis] > 0) shape.set_adaptive(axis, adaptive[axis]);
    out.push_back(shape);
  }
  return out;
}

}  // namespace

TEST_CASE_TEMPLATE("spatial pooling on CUDA has the host's bits", T, float, double) {
  if (!lockstep_test::has_gpu("kernel::SpatialPooling<CudaSpace>")) return;
  using Host = kernel::SpatialPooling<HostSpace>;
  using Cuda = kernel::SpatialPooling<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  for (auto const& s : shapes())
    for (auto write : {Write::overwrite, Write::add}) {
      CAPTURE(s.rows);
      CAPTURE(s.inputs);
      auto const in = s.rows * s.input_size(), out = s.rows * s.output_positions() * s.inputs;
      auto x = values<T>(in, 1);
      if (in > 40) x[37] = std::numeric_limits<T>::quiet_NaN();  // wins in every window
      auto const dy = values<T>(out, 2);
      auto dx = values<T>(in, 3), average_dx = dx;
      std::vector<T> y(static_cast<std::size_t>(out)), average(y);
      std::vector<std::int32_t> argmax(y.size());
      OnDevice<T> const device_x(x), device_dy(dy), device_dx(dx), device_average_dx(dx), device_y(y),
          device_average(y);
      OnDevice<std::int32_t> const device_argmax(argmax);
      Host::max<T>(host, s, view(x, in), view(y, out), view(argmax, out));
      Host::max_backward<T>(host, s, view(dy, out), view(argmax, out), view(dx, in), write);
      Cuda::max<T>(stream.view(), s, device_x.view(in), device_y.view(out), device_argmax.view(out));
      Cuda::max_backward<T>(stream.view(), s, device_dy.view(out), device_argmax.view(out), device_dx.view(in), write);
      CHECK(device_argmax.values() == argmax);
      CHECK(device_dx.values() == dx);
      auto const got = device_y.values();
      for (std::size_t i = 0; i < y.size(); ++i) CHECK((got[i] == y[i] || (got[i] != got[i] && y[i] != y[i])));
      if (in > 40) x[37] = T(0.25);
      OnDevice<T> const device_numbers(x);
      for (auto divisor : {kernel::PoolingDivisor::padded, kernel::PoolingDivisor::elements}) {
        Host::average<T>(host, s, view(x, in), view(average, out), divisor);
        Host::average_backward<T>(host, s, view(dy, out), view(average_dx, in), write, divisor);
        Cuda::average<T>(stream.view(), s, device_numbers.view(in), device_average.view(out), divisor);
        Cuda::average_backward<T>(stream.view(), s, device_dy.view(out), device_average_dx.view(in), write, divisor);
        CHECK(device_average.values() == average);
        CHECK(device_average_dx.values() == average_dx);
      }
    }
}

TEST_CASE("a window that does not fit is refused on CUDA, too") {
  if (!lockstep_test::has_gpu("kernel::SpatialPooling<CudaSpace>")) return;
  memory::CudaStream const stream;
  ConvolutionShape const shape{.rows = 1, .inputs = 1, .extent = {1, 1, 2}, .kernel = {1, 1, 3}};
  CHECK_THROWS_WITH_AS(
      kernel::SpatialPooling<CudaSpace>::average<float>(stream.view(), shape, {nullptr, {2}}, {nullptr, {0}}),
      doctest::Contains("the window [1, 1, 3]"), ShapeError);
}
