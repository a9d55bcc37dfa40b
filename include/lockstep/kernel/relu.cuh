// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/relu.hpp>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions and shapes as on the host, queued on the stream.
template <>
struct Relu<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T> y) {
    detail::for_elements("kernel::Relu::forward", stream, x.size(), [=] __device__(Index i) {
      auto const at = x.data[i];
      y.data[i] = at < T(0) ? T(0) : at;
    });
  }

  template <class T>
  static void backward(Stream stream, Vector<T const> dy, Vector<T const> y, Vector<T> dx, Write write) {
    detail::for_elements("kernel::Relu::backward", stream, dy.size(), [=] __device__(Index i) {
      auto const here = y.data[i] <= T(0) ? T(0) : dy.data[i];
      dx.data[i] = write == Write::overwrite ? here : static_cast<T>(dx.data[i] + here);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
