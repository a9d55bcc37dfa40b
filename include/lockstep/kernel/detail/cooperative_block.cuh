// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cub/block/block_reduce.cuh>
#include <lockstep/kernel/detail/cooperative_group.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail { inline namespace LOCKSTEP_CUDA_ABI {

/// A group of all threads of a block with this many threads, for long rows. Reduces in an order that depends only on
/// the number of threads, so with equal bits on each GPU: each thread of the first warp combines its value with
/// adjacent values of the other warps, one by one, then these 32 results are combined in pairs.
template <unsigned threads>
struct CooperativeThreads {
  static constexpr Index size = threads;
  static constexpr unsigned block = threads;

  [[nodiscard]] static __device__ Index first() noexcept { return blockIdx.x; }
  [[nodiscard]] static __device__ Index count() noexcept { return gridDim.x; }
  [[nodiscard]] static __device__ Index thread_rank() noexcept { return threadIdx.x; }
  static __device__ void synchronize() noexcept { __syncthreads(); }
  template <class Scalar>
  [[nodiscard]] static __device__ Scalar sum(Scalar value) noexcept {
    return reduce(value, [](Scalar a, Scalar b) { return a + b; });
  }
  template <class Scalar>
  [[nodiscard]] static __device__ Scalar largest(Scalar value) noexcept {
    return reduce(value, [](Scalar a, Scalar b) { return b > a || b != b ? b : a; });
  }

 private:
  /// Shares the result, which CUB returns to the first thread.
  template <class Scalar, class Function>
  [[nodiscard]] static __device__ Scalar reduce(Scalar value, Function const& f) noexcept {
    using Reduce = cub::BlockReduce<Scalar, static_cast<int>(threads), cub::BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY>;
    __shared__ typename Reduce::TempStorage partial;
    __shared__ Scalar result;
    value = Reduce(partial).Reduce(value, f);  // waits for all threads, which have read the last result
    if (threadIdx.x == 0) result = value;
    __syncthreads();
    return result;
  }
};
using CooperativeBlock = CooperativeThreads<threads_per_block>;

}  // namespace LOCKSTEP_CUDA_ABI
}}}  // namespace lockstep::kernel::detail
