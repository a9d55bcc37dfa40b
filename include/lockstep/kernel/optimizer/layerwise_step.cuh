// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/optimizer/layerwise_step.hpp>
#include <lockstep/memory/buffer.hpp>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {
namespace detail {

/// A stream's partial sums of the squares of values, then of the update, and both sums.
struct LayerwiseMemory {
  static constexpr Index max_chunks = 1024;
  memory::Buffer<double, CudaSpace> sums{2 * max_chunks + 2, memory::CudaResource{}};
};

}  // namespace detail

/// CUDA version of the primary template: three kernels for each parameter. Neither the norms nor their ratio are copied
/// to the host.
/// @determinism bitwise, run to run and, for one build, on GPUs of one architecture
template <>
struct LayerwiseStep<CudaSpace> : detail::KernelTypes<CudaSpace> {
  /// Updates a whole parameter by the rule, as on the host, but sums in another order.
  template <int states_count, class Slice, class Scalars, class MakeRule>
  static void run(Stream stream, Slice const& slice, Scalars const* scalars, MakeRule const& make_rule);
};

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED) || defined(__CUDACC__)
#include <lockstep/kernel/optimizer/layerwise_step.icuh>
#endif
