// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/channels.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel {

/// As on the host, bit for bit; queued on the stream.
template <>
struct Channels<CudaSpace> {
  using Stream = memory::Stream<CudaSpace>;
  template <class T>
  using Matrix = TensorView<T, 2, CudaSpace>;

  template <class T>
  static void put(Stream stream, Matrix<T const> x, Index first, Matrix<T> y) {
    detail::for_elements("kernel::Channels::put", stream, x.size(), [=] __device__(Index i) {
      auto const width = x.extent[1];
      y.data[i / width * y.extent[1] + first + i % width] = x.data[i];
    });
  }

  template <class T>
  static void take(Stream stream, Matrix<T const> y, Index first, Matrix<T> x, Write write) {
    detail::for_elements("kernel::Channels::take", stream, x.size(), [=] __device__(Index i) {
      auto const width = x.extent[1];
      auto const value = y.data[i / width * y.extent[1] + first + i % width];
      x.data[i] = write == Write::overwrite ? value : static_cast<T>(x.data[i] + value);
    });
  }
};

}  // namespace lockstep::inline LOCKSTEP_ABI::kernel
