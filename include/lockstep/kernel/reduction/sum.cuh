// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/sum_all.cuh>
#include <lockstep/kernel/reduction/sum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

template <>
struct Sum<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// CUDA version, which sums in another order; the sum is in device memory.
  /// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
  static void run(Stream stream, Vector<double const> x, double* to) {
    detail::launch_grid("kernel::Sum", stream, 1, detail::threads_per_block, detail::sum_all<double>, x.data, x.size(),
                        to);
  }
};

}}}  // namespace lockstep::kernel
