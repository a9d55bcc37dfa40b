// SPDX-License-Identifier: Apache-2.0
#pragma once
/// Compares convolutions on CUDA with the host's.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include <lockstep/kernel/convolution/convolution.cuh>

#include "kernel/values.hpp"
#include "kernel/view.hpp"
#include "memory/device.hpp"

namespace cuda_convolution {

using namespace lockstep;
using lockstep_test::OnDevice;
using lockstep_test::values;
using lockstep_test::view;

inline std::vector<kernel::ConvolutionShape> shapes() {
  return {{.rows = 0, .inputs = 3, .outputs = 2, .extent = {1, 4, 4}, .kernel = {1, 2, 2}},
          {.rows = 0, .inputs = 3, .outputs = 2, .extent = {1, 1, 0}, .kernel = {1, 1, 3}},
          {.rows = 1},
          {.rows = 2, .inputs = 3, .outputs = 4, .extent = {1, 1, 9}, .kernel = {1, 1, 3}, .padding = {0, 0, 1}},
          {.rows = 3, .inputs = 2, .outputs = 5, .extent = {1, 7, 6}, .kernel = {1, 3, 2}, .stride = {1, 2, 3}},
          {.rows = 2,
           .inputs = 2,
           .outputs = 3,
           .extent = {4, 5, 6},
           .kernel = {2, 3, 3},
           .stride = {2, 1, 2},
           .padding = {1, 1, 2}},
          {.rows = 2,
           .inputs = 3,
           .outputs = 2,
           .extent = {3, 4, 3},
           .kernel = {2, 1, 3},
           .stride = {1, 2, 1},
           .padding = {1, 0, 2}},
          // Dilated kernels, with different padding on both sides.
          {.rows = 2,
           .inputs = 3,
           .outputs = 4,
           .extent = {1, 1, 11},
           .kernel = {1, 1, 3},
           .padding = {0, 0, 6},
           .padding_after = {0, 0, 0},
           .dilation = {1, 1, 3}},
          {.rows = 2,
           .inputs = 2,
           .outputs = 3,
           .extent = {4, 7, 6},
           .kernel = {2, 3, 3},
           .stride = {1, 2, 3},
           .padding = {1, 2, 3},
           .dilation = {3, 2, 2}},
          // Grouped and depthwise convolutions; the last ones' weight gradient is computed in several parts.
          {.rows = 2,
           .inputs = 4,
           .outputs = 6,
           .extent = {1, 5, 6},
           .kernel = {1, 3, 2},
           .stride = {1, 1, 2},
           .padding = {0, 1, 1},
           .groups = 2},
          {.rows = 3,
           .inputs = 3,
           .outputs = 6,
           .extent = {1, 1, 9},
           .kernel = {1, 1, 3},
           .dilation = {1, 1, 2},
           .groups = 3},
          {.rows = 0, .inputs = 3, .outputs = 3, .extent = {1, 4, 4}, .kernel = {1, 2, 2}, .groups = 3},
          {.rows = 0, .inputs = 4, .outputs = 2, .extent = {1, 4, 4}, .kernel = {1, 2, 2}, .groups = 2},
          {.rows = 2,
           .inputs = 5,
           .outputs = 5,
           .extent = {2, 7, 6},
           .kernel = {2, 3, 3},
           .stride = {1, 2, 3},
           .padding = {1, 1, 2},
           .padding_after = {1, 2, 1},
           .dilation = {1, 1, 2},
           .groups = 5},
          {.rows = 70,
           .inputs = 2,
           .outputs = 2,
           .extent = {1, 1, 150},
           .kernel = {1, 1, 5},
           .stride = {1, 1, 2},
           .padding = {0, 0, 2},
           .groups = 2},
          // Long sums for few weights: one tile and parts of several; groups; a short last chunk.
          {.rows = 3, .inputs = 3, .outputs = 5, .extent = {1, 20, 20}, .kernel = {1, 3, 3}, .padding = {0, 1, 1}},
          {.rows = 5, .inputs = 9, .outputs = 34, .extent = {1, 1, 127}, .kernel = {1, 1, 8}, .padding = {0, 0, 4}},
          {.rows = 9,
           .inputs = 4,
           .outputs = 6,
           .extent = {1, 1, 100},
           .kernel = {1, 1, 5},
           .padding = {0, 0, 2},
           .groups = 2}};
}

/// The largest error, in units of epsilon.
template <class T>
double worst(std::vector<T> const& got, std::vector<T> const& expected) {
  double most = got.size() == expected.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < expected.size(); ++i) {
    double const error = std::abs(static_cast<double>(got[i]) - static_cast<double>(expected[i]));
    if (!(error <= most)) most = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
  }
  return most / static_cast<double>(std::numeric_limits<T>::epsilon());
}

/// Every pass over every shape, overwriting and adding.
template <class T>
void check_beside_host() {
  using Host = kernel::Convolution<HostSpace>;
  using Cuda = kernel::Convolution<CudaSpace>;
  ThreadPool pool(1);
  memory::Stream<HostSpace> const host(pool);
  memory::CudaStream const stream;
  Host::Plans<T> plans;
  Host::Scratch scratch;
  Cuda::Plans<T> device_plans;
  Cuda::Scratch device_scratch;
  for (auto const& s : shapes())
    for (auto write : {Write::overwrite, Write::add}) {
      CAPTURE(s.rows);
      CAPTURE(s.outputs);
      auto const in = s.rows * s.input_size(), out = s.rows * s.output_size(), taps = s.weight_size();
      auto const x = values<T>(in, 1), weight = values<T>(taps, 2), bias = values<T>(s.outputs, 3),
                 dy = values<T>(out, 4);
      std::vector<T> y(static_cast<std::size_t>(out));
      auto dx = values<T>(in, 5), dweight = values<T>(taps, 6), dbias = values<T>(s.outputs, 7);
      OnDevice<T> const device_x(x), device_weight(weight), device_bias(bias), device_dy(dy), device_y(y),
          device_dx(dx), device_dweight(dweight), device_dbias(dbias);
      Host::forward<T>(host, s, view(x, in), view(weight, taps), view(bias, s.outputs), view(y, out), plans, scratch);
      Host::backward_data<T>(host, s, view(dy, out), view(weight, taps), view(dx, in), write, plans, scratch);
      Host::backward_weight<T>(host, s, view(dy, out), view(x, in), view(dweight, taps), write, view(dbias, s.outputs),
                               write, plans, scratch);
      Cuda::forward<T>(stream.view(), s, device_x.view(in), device_weight.view(taps), device_bias.view(s.outputs),
                       device_y.view(out), device_plans, device_scratch);
      Cuda::backward_data<T>(stream.view(), s, device_dy.view(out), device_weight.view(taps), device_dx.view(in), write,
                             device_plans, device_scratch);
      Cuda::backward_weight<T>(stream.view(), s, device_dy.view(out), device_x.view(in), device_dweight.view(taps),
                               write, device_dbias.view(s.outputs), write, device_plans, device_scratch);
      // Sums of `terms` products up to 1, each rounded as often on either side.
      auto const bound = [](Index terms) { return static_cast<double>((terms + 2) * (terms + 2)); };
      CHECK(worst(device_y.values(), y) <= bound(s.group_inputs() * s.taps()));
      CHECK(worst(device_dx.values(), dx) <= bound(s.group_outputs() * s.taps()));
      CHECK(worst(device_dweight.values(), dweight) <= bound(s.rows * s.output_positions()));
      CHECK(worst(device_dbias.values(), dbias) <= bound(s.rows * s.output_positions()));
    }
}

/// Compares the weight gradient of 16-bit activations, which is float, with that of equal float values.
template <class Low>
void check_weight_in_16_bits() {
  using Cuda = kernel::Convolution<CudaSpace>;
  memory::CudaStream const stream;
  Cuda::Plans<Low> plans;
  Cuda::Plans<float> float_plans;
  Cuda::Scratch scratch;
  for (auto const& s : shapes())
    for (auto write : {Write::overwrite, Write::add}) {
      CAPTURE(s.rows);
      CAPTURE(s.outputs);
      auto const in = s.rows * s.input_size(), out = s.rows * s.output_size(), taps = s.weight_size();
      auto const low_x = values<Low>(in, 1), low_dy = values<Low>(out, 2);
      std::vector<float> const x(low_x.begin(), low_x.end()), dy(low_dy.begin(), low_dy.end()),
          before = values<float>(taps, 3);
      OnDevice<Low> const device_low_x(low_x), device_low_dy(low_dy);
      OnDevice<float> const device_x(x), device_dy(dy), got(before), expected(before);
      Cuda::backward_weight<Low>(stream.view(), s, device_low_dy.view(out), device_low_x.view(in), got.view(taps),
                                 write, {}, write, plans, scratch);
      Cuda::backward_weight<float>(stream.view(), s, device_dy.view(out), device_x.view(in), expected.view(taps), write,
                                   {}, write, float_plans, scratch);
      auto const terms = static_cast<double>(s.rows * s.output_positions() + 2);
      CHECK(worst(got.values(), expected.values()) <= terms * terms);
    }
}

}  // namespace cuda_convolution
