// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/l2_normalize.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct L2Normalize<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes reciprocals[r] = 1 / max(|x[r]|, epsilon) and y[r] = x[r] * reciprocals[r]. Skips null reciprocals.
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Accumulate<Scalar> epsilon,
                      Vector<Accumulate<Scalar>> reciprocals, Matrix<Scalar> y);

  /// Computes the gradient of x from dy, or adds it to dx.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x, Accumulate<Scalar> epsilon,
                       Vector<Accumulate<Scalar> const> reciprocals, Matrix<Scalar> dx, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/l2_normalize.icuh>
#endif
