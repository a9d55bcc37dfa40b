// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/detail/warp.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {
inline namespace LOCKSTEP_CUDA_ABI {

/// The threads that work on one row together: a warp. All of them must call `sum` and `largest`.
struct CooperativeWarp {
  static constexpr Index size = warp;
  static constexpr unsigned block = threads_per_block;  // threads of a block

  /// This group's first row, and the number of groups.
  [[nodiscard]] static __device__ Index first() noexcept { return grid_warp(); }
  [[nodiscard]] static __device__ Index count() noexcept { return grid_warps(); }
  [[nodiscard]] static __device__ Index thread_rank() noexcept { return lane(); }
  /// Waits until all threads arrive and their earlier memory accesses are visible. Sums exchange registers and do not
  /// order memory.
  static __device__ void synchronize() noexcept { __syncwarp(); }
  template <class Scalar>
  [[nodiscard]] static __device__ Scalar sum(Scalar value) noexcept {
    return warp_sum(value);
  }
  template <class Scalar>
  [[nodiscard]] static __device__ Scalar largest(Scalar value) noexcept {
    return warp_largest(value);
  }
};

/// A group of all threads of a block with this many threads, for long rows. cub::BlockReduce returns a result to the
/// first thread only: the others would need a further barrier.
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
    return combine(warp_sum(value), [](Scalar a, Scalar b) { return a + b; });
  }
  template <class Scalar>
  [[nodiscard]] static __device__ Scalar largest(Scalar value) noexcept {
    return combine(warp_largest(value), [](Scalar a, Scalar b) { return b > a || b != b ? b : a; });
  }

 private:
  /// Combines one value per warp, in order, and returns the result to each thread.
  template <class Scalar, class Function>
  [[nodiscard]] static __device__ Scalar combine(Scalar of_warp, Function const& f) noexcept {
    __shared__ Scalar values[threads / warp];
    __syncthreads();  // wait until the last call's values were read
    if (lane() == 0) values[threadIdx.x / warp] = of_warp;
    __syncthreads();
    Scalar result = values[0];
    for (Index w = 1; w < threads / warp; ++w) result = f(result, values[w]);
    return result;
  }
};
using CooperativeBlock = CooperativeThreads<threads_per_block>;

}  // namespace LOCKSTEP_CUDA_ABI

/// Queues a kernel whose groups step over `rows` rows.
template <class Group, class... Parameters, class... Arguments>
void launch_groups(char const* name, memory::Stream<CudaSpace> stream, Index rows, void (*kernel)(Parameters...),
                   Arguments const&... arguments) {
  constexpr Index in_a_block = Index{Group::block} / Group::size, max_blocks = Index{1} << 20;
  auto const blocks = std::min((rows + in_a_block - 1) / in_a_block, max_blocks);
  launch_grid(name, stream, static_cast<unsigned>(blocks), Group::block, kernel, arguments...);
}

}}}  // namespace lockstep::kernel::detail
