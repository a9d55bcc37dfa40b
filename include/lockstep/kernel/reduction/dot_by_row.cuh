// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/reduction/dot_by_row.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions and shapes, queued on the stream.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture: no atomics, sums in a fixed order
template <>
struct DotByRow<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes z[r] = a[r] . b[r].
  template <class Scalar>
  static void forward(Stream stream, Matrix<Scalar const> a, Matrix<Scalar const> b, Vector<Scalar> z);

  /// Computes da[r] = dz[r] b[r], or adds it to da. For the gradient of b, swap a and b.
  template <class Scalar>
  static void backward(Stream stream, Vector<Scalar const> dz, Matrix<Scalar const> b, Matrix<Scalar> da, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/dot_by_row.icuh>
#endif
