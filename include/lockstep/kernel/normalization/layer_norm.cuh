// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/layer_norm.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

namespace detail {
template <class Number>
struct RowStatistics;
}  // namespace detail

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct LayerNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Whether `backward` sums dresidual's columns faster than a pass of its own.
  static constexpr bool sums_dresidual = true;

  /// Computes sum = x + dropout(residual), its moments by row, and y, by the host's formulas. Skips null outputs.
  /// @throws ShapeError if the shapes disagree
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> x, Residual<Scalar, CudaSpace> residual,
                      Vector<Accumulate<Scalar> const> weight, Vector<Accumulate<Scalar> const> bias,
                      Accumulate<Scalar> epsilon, Matrix<Scalar> sum, Matrix<Accumulate<Scalar>> moments,
                      Matrix<Scalar> y);

  /// Returns the number of elements that `backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index width) noexcept;

  /// Computes all gradients, by the host's formulas; overwrites or adds to each. Skips a null dx or dresidual. Also
  /// sums the rows of dresidual, unless dresidual_sums is null.
  template <class Scalar>
  static void backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> sum,
                       Matrix<Accumulate<Scalar> const> moments, Residual<Scalar, CudaSpace> residual,
                       Vector<Accumulate<Scalar> const> weight, Matrix<Scalar> dx, Write dx_write,
                       Matrix<Scalar> dresidual, Write dresidual_write, Vector<Accumulate<Scalar>> dweight,
                       Write dweight_write, Vector<Accumulate<Scalar>> dbias, Write dbias_write,
                       Accumulate<Scalar>* partial, Vector<Accumulate<Scalar>> dresidual_sums = {},
                       Write dresidual_sums_write = Write::overwrite);

 private:
  template <class Statistic>
  [[nodiscard]] static detail::RowStatistics<Statistic> statistics(Matrix<Statistic> moments) noexcept;
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/layer_norm.icuh>
#endif
