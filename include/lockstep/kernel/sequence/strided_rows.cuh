// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/launch.cuh>
#include <lockstep/kernel/sequence/strided_rows.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct StridedRows<CudaSpace> : detail::KernelTypes<CudaSpace> {
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Index stride, Index first, Matrix<Scalar> y) {
    detail::for_elements("kernel::StridedRows::forward", stream, y.size(), [=] __device__(Index i) {
      auto const width = y.extent[1];
      y.data[i] = x.data[(i / width * stride + first) * width + i % width];
    });
  }

  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Index stride, Index first, Matrix<Scalar> dx,
                       Write write) {
    detail::for_elements("kernel::StridedRows::backward", stream, dy.size() * stride, [=] __device__(Index i) {
      auto const width = dy.extent[1], row = i / width;
      Scalar const value = row % stride == first ? dy.data[row / stride * width + i % width] : Scalar{0};
      dx.data[i] = write == Write::overwrite ? value : static_cast<Scalar>(dx.data[i] + value);
    });
  }
};

}}}  // namespace lockstep::kernel
