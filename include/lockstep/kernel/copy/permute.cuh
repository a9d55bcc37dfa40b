// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/copy/permute.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version with the host's functions, shapes and bits, queued on the stream. Tiles are transposed in shared memory
/// if x and y end with different axes of at least 8 elements each.
template <>
struct Permute<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Computes y[i] = x[s.source(i)], or adds it to y[i].
  template <class Scalar>
  static void run(Stream stream, PermuteShape const& s, Vector<Scalar const> x, Vector<Scalar> y, Write write);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/copy/permute.icuh>
#endif
