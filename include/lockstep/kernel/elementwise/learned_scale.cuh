// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/elementwise/learned_scale.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. s is in device memory. s and its gradient
/// are in the type of the computation.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture; sums differ from the host's by
/// rounding
template <>
struct LearnedScale<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y = factor.of(*s) * x, or adds it to y.
  template <class Scalar>
  static void run(Stream stream, LearnedFactor factor, Accumulate<Scalar> const* s, Vector<Scalar const> x,
                  Vector<Scalar> y, Write write);

  /// Returns the number of partial sums that `factor_backward` needs.
  [[nodiscard]] static constexpr Index chunks(Index elements) noexcept {
    return LearnedScale<HostSpace>::chunks(elements);
  }

  /// Computes *ds = factor.gradient(*s, the sum over i of dy[i] * x[i]), or adds it to *ds.
  template <class Scalar>
  static void factor_backward(Stream stream, LearnedFactor factor, Accumulate<Scalar> const* s, Vector<Scalar const> dy,
                              Vector<Scalar const> x, Accumulate<Scalar>* ds, Write write, double* partial);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/elementwise/learned_scale.icuh>
#endif
