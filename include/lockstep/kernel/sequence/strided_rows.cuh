// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/sequence/strided_rows.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version, bit-identical to the host's; queued on the stream.
template <>
struct StridedRows<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y[i] = x[i * stride + first].
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Index stride, Index first, Matrix<Scalar> y);

  /// Computes dx[i * stride + first] = dy[i] and zero elsewhere, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Index stride, Index first, Matrix<Scalar> dx,
                       Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/sequence/strided_rows.icuh>
#endif
