// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>

#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel {

/// Sums buffers into the first one, queued on the stream: sources[0][i] = the tree's sum of element i over all sources,
/// for i < size. One kernel, which reads each source once, for up to 16 sources. The CUDA version of core's
/// tree_sum_into_first.
/// @determinism bitwise, and equal to the host's
template <class Scalar>
void sum_buffers(memory::Stream<CudaSpace> stream, std::span<Scalar* const> sources, Index size);

/// Deprecated: use sum_buffers().
template <class Scalar>
[[deprecated("kernel::sum_buffers")]] void sum_into_first(memory::Stream<CudaSpace> stream,
                                                          std::span<Scalar* const> sources, Index size) {
  sum_buffers(stream, sources, size);
}

}}}  // namespace lockstep::kernel

#if !defined(LOCKSTEP_COMPILED)
#include <lockstep/kernel/reduction/sum_buffers.icuh>
#endif
