// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/add.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// Functions, shapes and bits as on the host, queued on the stream.
template <>
struct Add<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Vector = TensorView<T, 1, CudaSpace>;

  template <class T>
  static void forward(Stream stream, Vector<T const> x, Vector<T const> y, Vector<T> z) {
    detail::for_elements("kernel::Add::forward", stream, x.size(),
                         [=] __device__(Index i) { z.data[i] = static_cast<T>(x.data[i] + y.data[i]); });
  }

  template <class T>
  static void backward(Stream stream, Vector<T const> dz, Vector<T> dx, Write write) {
    detail::for_elements("kernel::Add::backward", stream, dz.size(), [=] __device__(Index i) {
      dx.data[i] = write == Write::overwrite ? dz.data[i] : static_cast<T>(dx.data[i] + dz.data[i]);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
