// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/neighbours.cuh>
#include <lockstep/kernel/detail/normal_distribution.cuh>
#include <lockstep/kernel/gelu.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions and shapes as on the host, queued on the stream; the exponential is the device's own.
template <>
struct Gelu<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y) {
    auto const name = "kernel::Gelu::forward";
    detail::for_neighbours<T>(name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> values;
      here.load_as(x.data, values);
      for (auto& value : values) value *= detail::device_normal_distribution(value).integral;
      here.put(values, y.data);
    });
  }

  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Vector<T> slope) {
    auto const name = "kernel::Gelu::forward";
    detail::for_neighbours<T>(name, stream, x.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> values, slopes;
      here.load_as(x.data, values);
      for (int j = 0; j < here.size; ++j) {
        auto const normal = detail::device_normal_distribution(values[j]);
        slopes[j] = detail::gelu_slope(values[j], normal);
        values[j] *= normal.integral;
      }
      here.put(values, y.data);
      here.put(slopes, slope.data);
    });
  }

  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> slope, Vector<T> dx, Write write) {
    auto const name = "kernel::Gelu::backward";
    detail::for_neighbours<T>(name, stream, dy.size(), [=] __device__(detail::NeighboursOf<T> const& here) {
      detail::NumbersOf<T> gradients, slopes;
      here.load_as(dy.data, gradients);
      here.load_as(slope.data, slopes);
      for (int j = 0; j < here.size; ++j) gradients[j] = detail::product(gradients[j], slopes[j]);
      here.put(gradients, dx.data, write);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
