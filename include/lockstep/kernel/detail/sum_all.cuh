// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/core/tensor_view.hpp>
#include <lockstep/kernel/detail/cooperative_block.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// Computes to[b] = the sum of all elements of the b-th vector in block b, in an order that depends only on their
/// number. The order of cub::DeviceReduce depends on the number of multiprocessors, and that of
/// cub::DeviceSegmentedReduce on the address: ranks on different GPUs would compute different norms.
template <class Scalar>
LOCKSTEP_CUDA_KERNEL void sum_all(TensorView<Scalar const, 1, CudaSpace> first,
                                  TensorView<Scalar const, 1, CudaSpace> second, Scalar* to) {
  auto const x = CooperativeBlock::first() == 0 ? first : second;
  Scalar sum = 0;
  for (auto i = CooperativeBlock::thread_rank(); i < x.extent[0]; i += CooperativeBlock::size) sum += x.data[i];
  sum = CooperativeBlock::sum(sum);
  if (CooperativeBlock::thread_rank() == 0) to[CooperativeBlock::first()] = sum;
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Queues `sum_all` for one vector.
template <class Scalar>
void queue_sum(char const* name, memory::Stream<CudaSpace> stream, TensorView<Scalar const, 1, CudaSpace> x,
               Scalar* to) {
  launch_grid(name, stream, 1, CooperativeBlock::block, sum_all<Scalar>, x, x, to);
}

}}}  // namespace lockstep::kernel::detail
