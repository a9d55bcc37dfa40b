// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/kernel/detail/cooperative_block.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// Computes *to = the sum of all elements in one block, in an order that depends only on their number.
/// The order of cub::DeviceReduce depends on the number of multiprocessors, and that of cub::DeviceSegmentedReduce on
/// the address: ranks on different GPUs would compute different norms.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_all(Scalar const* x, Index count, Scalar* to) {
  Scalar sum = 0;
  for (auto i = CooperativeBlock::thread_rank(); i < count; i += CooperativeBlock::size) sum += x[i];
  sum = CooperativeBlock::sum(sum);
  if (CooperativeBlock::thread_rank() == 0) *to = sum;
}

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
