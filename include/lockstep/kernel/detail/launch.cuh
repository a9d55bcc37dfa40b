// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>

#include <lockstep/kernel/detail/cuda_abi.cuh>
#include <lockstep/memory/cuda.cuh>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace kernel::detail {

inline constexpr unsigned threads_per_block = 256;
inline constexpr unsigned warp = 32;
inline constexpr Index warps_per_block = threads_per_block / warp;

/// Returns the number of blocks of `threads_per_block` for `threads` threads. It is capped, which costs nothing because
/// kernels step over the grid.
[[nodiscard]] inline unsigned blocks_for(Index threads) noexcept {
  auto const blocks = (threads + threads_per_block - 1) / threads_per_block;
  return static_cast<unsigned>(std::min<Index>(blocks, Index{1} << 20));
}

/// Size of a block's dynamic shared memory. GPUs allow more than 48 KB in sum with static shared memory only if asked:
/// up to 163 KB (compute capability 8.0), 99 KB (8.6, 8.9) or 227 KB (9.0).
struct DynamicShared {
  std::size_t bytes = 0;
};

/// Queues kernel(arguments...) on the stream. Faults of the kernel itself appear when the stream is waited for.
/// Launches nothing for a grid without blocks.
/// @param shared  a size that depends only on the kernel: launches of a kernel with two sizes at once, by two threads,
///                could refuse each other
/// @throws CudaError, with `name`, if CUDA rejects the launch
template <class... Parameters, class... Arguments>
void launch_grid(char const* name, memory::Stream<CudaSpace> stream, dim3 blocks, dim3 threads, DynamicShared shared,
                 void (*kernel)(Parameters...), Arguments const&... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return;
  if (shared.bytes > 0)
    memory::check_cuda(
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared.bytes)),
        name);
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.dynamicSmemBytes = shared.bytes;
  config.stream = stream.get();
  memory::check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), name);
  ++stream.queued().kernels;
}
template <class... Parameters, class... Arguments>
void launch_grid(char const* name, memory::Stream<CudaSpace> stream, dim3 blocks, dim3 threads,
                 void (*kernel)(Parameters...), Arguments const&... arguments) {
  launch_grid(name, stream, blocks, threads, DynamicShared{}, kernel, arguments...);
}

/// Queues a kernel that steps over the grid, for `count` threads of work.
template <class... Parameters, class... Arguments>
void launch(char const* name, memory::Stream<CudaSpace> stream, Index count, void (*kernel)(Parameters...),
            Arguments const&... arguments) {
  launch_grid(name, stream, blocks_for(count), threads_per_block, kernel, arguments...);
}

/// Loads the kernel onto the device. Otherwise its first launch does it, and may then wait for all queued work.
template <class... Parameters>
void load(char const* name, void (*kernel)(Parameters...)) {
  cudaFuncAttributes attributes{};
  memory::check_cuda(cudaFuncGetAttributes(&attributes, kernel), name);
}

inline namespace LOCKSTEP_CUDA_ABI {

#ifndef LOCKSTEP_DYNAMIC_SHARED  // tests on the CPU define it
#define LOCKSTEP_DYNAMIC_SHARED(name) extern __shared__ __align__(128) std::byte name[]
#endif
/// Returns the block's dynamic shared memory, aligned to 128 bytes: as many bytes as the launch requests. Every call in
/// a kernel returns the same memory.
[[nodiscard]] __device__ inline std::byte* dynamic_shared() noexcept {
  LOCKSTEP_DYNAMIC_SHARED(dynamic_shared_memory);
  return dynamic_shared_memory;
}

/// This thread's number in the grid, and the grid's number of threads.
__device__ inline Index grid_thread() noexcept { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline Index grid_threads() noexcept { return Index{gridDim.x} * blockDim.x; }
/// This warp's number in the grid, the grid's number of warps, and this thread's lane.
__device__ inline Index grid_warp() noexcept { return grid_thread() / warp; }
__device__ inline Index grid_warps() noexcept { return grid_threads() / warp; }
__device__ inline Index lane() noexcept { return threadIdx.x % warp; }

template <class F>
LOCKSTEP_CUDA_KERNEL void run_elements(Index count, F f) {
  for (auto i = grid_thread(); i < count; i += grid_threads()) f(i);
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Queues f(i) for each i in [0, count), one thread each.
template <class F>
void for_elements(char const* name, memory::Stream<CudaSpace> stream, Index count, F const& f) {
  launch(name, stream, count, run_elements<F>, count, f);
}

}}}  // namespace lockstep::kernel::detail
