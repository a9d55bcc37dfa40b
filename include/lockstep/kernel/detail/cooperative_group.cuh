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
