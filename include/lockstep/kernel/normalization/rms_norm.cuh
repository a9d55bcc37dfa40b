// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/rms_norm.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct RMSNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes sum = x + dropout(residual) and y = weight * sum / sqrt(mean(sum^2) + epsilon). Skips null reciprocals.
  /// @throws ShapeError if the shapes disagree
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, CudaSpace> residual,
                      Vector<Accumulate<Scalar> const> weight, Accumulate<Scalar> epsilon, Matrix<Scalar> sum,
                      Vector<Accumulate<Scalar>> reciprocals, Matrix<Scalar> y);

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index width) noexcept;

  /// Computes all gradients, by the host's formulas; overwrites or adds to each. Skips a null dx or dresidual.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Vector<Accumulate<Scalar> const> reciprocals, Matrix<Scalar const> other_gradient,
                       RowDropout<CudaSpace> dropout, Vector<Accumulate<Scalar> const> weight, Matrix<Scalar> dx,
                       Write dx_write, Matrix<Scalar> dresidual, Write dresidual_write,
                       Vector<Accumulate<Scalar>> dweight, Write dweight_write, Accumulate<Scalar>* partial);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/rms_norm.icuh>
#endif
