// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/linear/gated_linear.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. cuBLASLt computes the matrix product.
/// @determinism as for Gemm
template <>
struct GatedLinear<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes h = x weight^T + bias, then y = gate * h and slope *= h. Skips a null slope.   @throws ShapeError as on
  /// the host
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar const> weight, Vector<Scalar const> bias,
                      Matrix<Scalar const> gate, Matrix<Scalar> slope, Matrix<Scalar> y);

  /// Computes gate *= dy and slope *= dy, which are then the gradients of h and of the gates' input.
  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dy, Vector<Scalar> gate, Vector<Scalar> slope);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/linear/gated_linear.icuh>
#endif
