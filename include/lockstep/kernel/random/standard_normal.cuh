// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/bfloat16.hpp>
#include <lockstep/kernel/random/standard_normal.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version of the primary template.
template <>
struct StandardNormal<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, equal to the host's except for rounding; queued on `stream`.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
  template <class Scalar>
  static void fill(Stream stream, DropoutMask mask, SequenceLayout<CudaSpace> layout, Matrix<Scalar> to);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/random/standard_normal.icuh>
#endif
