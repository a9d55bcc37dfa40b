// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/reduction/sum.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// CUDA version of the primary template.
template <>
struct Sum<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, which sums in another order; the sum is in device memory.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
  static void run(Stream stream, Vector<double const> x, double* to);
  /// Sums two vectors, each as `run` does, in one launch.
  static void run_both(Stream stream, Vector<double const> x, Vector<double const> y, double* to);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/sum.icuh>
#endif
