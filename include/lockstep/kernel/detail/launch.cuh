// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>

#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep::inline LOCKSTEP_ABI::kernel::detail {

inline constexpr unsigned threads_per_block = 256;

/// Blocks of `threads_per_block` that give `threads` threads; kernels step over the grid, so a cap costs nothing.
[[nodiscard]] inline unsigned blocks_for(Index threads) noexcept {
  auto const blocks = (threads + threads_per_block - 1) / threads_per_block;
  return static_cast<unsigned>(std::min<Index>(blocks, Index{1} << 20));
}

/// What a launch before this call went wrong with; a kernel's own faults come out when its stream is waited for.
inline void check_launch(char const* kernel) { memory::check_cuda(cudaGetLastError(), kernel); }

inline namespace LOCKSTEP_CUDA_ABI {

/// This thread's number in the grid, and the grid's size.
__device__ inline Index grid_thread() noexcept { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline Index grid_threads() noexcept { return Index{gridDim.x} * blockDim.x; }

}  // namespace LOCKSTEP_CUDA_ABI
}  // namespace lockstep::inline LOCKSTEP_ABI::kernel::detail
