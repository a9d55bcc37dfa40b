// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/softmax.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct Softmax<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y[r, c] = exp(x[r, c]) / sum over c of exp(x[r, c]).
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Matrix<Scalar> y);

  /// Computes dx[r] = y[r] (dy[r] - y[r] . dy[r]), or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> y, Matrix<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/softmax.icuh>
#endif
