// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/normalization/group_norm.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct GroupNorm<CudaSpace> : detail::KernelTypes<CudaSpace> {
  using Shape = GroupNormShape;  ///< extents of x

  /// Statistics that normalize each channel of each sample, in device memory.
  template <class Scalar>
  struct Statistics {
    Scalar* mean;        ///< [rows, channels]
    Scalar* reciprocal;  ///< [rows, channels]: 1 / sqrt(variance + epsilon)
  };

  /// Returns the number of elements that `forward` and `backward` need for their partial sums.
  [[nodiscard]] static Index partial_elements(Shape const& s) noexcept;

  /// Computes the statistics of x, and y = activation((x - mean) * reciprocal * weight + bias).
  template <class Scalar>
  static void forward(Stream stream, Shape const& s, Scalar const* x, double epsilon,
                      Statistics<Accumulate<Scalar>> statistics, Accumulate<Scalar> const* weight,
                      Accumulate<Scalar> const* bias, Activation activation, Scalar* y, Accumulate<Scalar>* partial);

  /// Computes dx, dweight and dbias, by the host's formulas; overwrites or adds to each. Skips a null dx.
  template <class Scalar>
  static void backward(Stream stream, Shape const& s, Scalar const* dy, Scalar const* x,
                       Statistics<Accumulate<Scalar>> statistics, Accumulate<Scalar> const* weight,
                       Accumulate<Scalar> const* bias, Activation activation, Scalar* dx, Write dx_write,
                       Accumulate<Scalar>* dweight, Write dweight_write, Accumulate<Scalar>* dbias, Write dbias_write,
                       Accumulate<Scalar>* partial);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/normalization/group_norm.icuh>
#endif
