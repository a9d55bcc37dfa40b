// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/channel_scale.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. Factors and their gradient are in the type
/// of the computation.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; gradients of factors differ from
/// the host's by rounding
template <>
struct ChannelScale<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y[r, c] = x[r, c] * factors[c], or adds it to y.
  template <class Scalar>
  static void run(Stream stream, Vector<Accumulate<Scalar> const> factors, Matrix<Scalar const> x, Matrix<Scalar> y,
                  Write write);

  /// Returns the number of elements that `factors_backward` needs for its partial sums.
  [[nodiscard]] static Index partial_elements(Index rows, Index channels) noexcept;

  /// Computes dfactors[c] = the sum over the rows r of dy[r, c] * x[r, c], or adds it to dfactors.
  template <class Scalar>
  static void factors_backward(Stream stream, Matrix<Scalar const> dy, Matrix<Scalar const> x,
                               Vector<Accumulate<Scalar>> dfactors, Write write, Accumulate<Scalar>* partial);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/elementwise/channel_scale.icuh>
#endif
