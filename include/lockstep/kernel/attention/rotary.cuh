// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/attention/rotary.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream. For 16-bit activations, the table is float.
/// One thread processes one angle of a token's head.
template <>
struct Rotary<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes the table of cosines and sines.
  template <class Scalar>
  static void fill(Stream stream, double base, Index first, Matrix<Scalar> table);

  /// Rotates x by the angles of the table, in place.
  template <class Scalar>
  static void run(Stream stream, SequenceLayout<CudaSpace> const& layout, Matrix<Accumulate<Scalar> const> table,
                  Rotation rotation, Matrix<Scalar> x);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/attention/rotary.icuh>
#endif
