// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/copy/channels.hpp>
#include <lockstep/kernel/detail/launch.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct Channels<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void put(Stream stream, Matrix<Scalar const> x, Index first, Matrix<Scalar> y) {
    detail::for_elements("kernel::Channels::put", stream, x.size(), [=] __device__(Index i) {
      auto const width = x.extent[1];
      y.data[i / width * y.extent[1] + first + i % width] = x.data[i];
    });
  }

  template <class Scalar>
  static void take(Stream stream, Matrix<Scalar const> y, Index first, Matrix<Scalar> x, Write write) {
    detail::for_elements("kernel::Channels::take", stream, x.size(), [=] __device__(Index i) {
      auto const width = x.extent[1];
      auto const value = y.data[i / width * y.extent[1] + first + i % width];
      x.data[i] = write == Write::overwrite ? value : static_cast<Scalar>(x.data[i] + value);
    });
  }

  template <class Scalar>
  static void take_backward(Stream stream, Matrix<Scalar const> dx, Index first, Matrix<Scalar> dy, Write write) {
    auto const width = dx.extent[1];
    if (write == Write::add)
      return detail::for_elements("kernel::Channels::take_backward", stream, dx.size(), [=] __device__(Index i) {
        auto& to = dy.data[i / width * dy.extent[1] + first + i % width];
        to = static_cast<Scalar>(to + dx.data[i]);
      });
    detail::for_elements("kernel::Channels::take_backward", stream, dy.size(), [=] __device__(Index i) {
      auto const row = i / dy.extent[1], c = i % dy.extent[1] - first;
      dy.data[i] = c >= 0 && c < width ? dx.data[row * width + c] : Scalar{0};
    });
  }
};

}}}  // namespace lockstep::kernel
