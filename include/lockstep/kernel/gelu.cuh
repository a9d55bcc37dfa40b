// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/detail/normal_distribution.cuh>
#include <lockstep/kernel/detail/product.cuh>
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
    detail::for_elements("kernel::Gelu::forward", stream, x.size(), [=] __device__(Index i) {
      Accumulate<T> const at = x.data[i];
      y.data[i] = static_cast<T>(at * detail::device_normal_distribution(at).integral);
    });
  }

  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y, Vector<T> slope) {
    detail::for_elements("kernel::Gelu::forward", stream, x.size(), [=] __device__(Index i) {
      Accumulate<T> const at = x.data[i];
      auto const normal = detail::device_normal_distribution(at);
      y.data[i] = static_cast<T>(at * normal.integral);
      slope.data[i] = static_cast<T>(detail::gelu_slope(at, normal));
    });
  }

  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> slope, Vector<T> dx, Write write) {
    detail::for_elements("kernel::Gelu::backward", stream, dy.size(), [=] __device__(Index i) {
      using Sum = Accumulate<T>;
      Sum const here = detail::product(static_cast<Sum>(dy.data[i]), static_cast<Sum>(slope.data[i]));
      dx.data[i] = static_cast<T>(write == Write::overwrite ? here : dx.data[i] + here);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
