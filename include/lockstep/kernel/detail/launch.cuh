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

/// Queues kernel(arguments...) on the stream. Faults of the kernel itself appear when the stream is waited for.
/// Launches nothing for a grid without blocks.
/// @tparam shared_bytes  dynamic shared memory per block; see dynamic_shared
/// @throws CudaError, with `name`, if CUDA rejects the launch
template <int shared_bytes = 0, class... Parameters, class... Arguments>
void launch_grid(char const* name, memory::Stream<CudaSpace> stream, dim3 blocks, dim3 threads,
                 void (*kernel)(Parameters...), Arguments const&... arguments) {
  if (blocks.x == 0 || blocks.y == 0) return;
  cudaLaunchConfig_t config{};
  config.gridDim = blocks;
  config.blockDim = threads;
  config.stream = stream.get();
  if constexpr (shared_bytes > 0) {
    memory::check_cuda(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared_bytes), name);
    config.dynamicSmemBytes = shared_bytes;
  }
  memory::check_cuda(cudaLaunchKernelEx(&config, kernel, arguments...), name);
  ++stream.queued().kernels;
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

/// Limit of a block's static shared memory; more must be dynamic.
inline constexpr std::size_t most_static_shared_bytes = std::size_t{48} << 10;

inline namespace LOCKSTEP_CUDA_ABI {

/// Returns the block's dynamic shared memory, aligned to 16 bytes.
template <class T>
[[nodiscard]] __device__ T* dynamic_shared() noexcept {
#ifdef LOCKSTEP_CUDA_EMULATION  // by the tests, whose static variables have a fixed size
  auto* const memory = cuda_emulation::dynamic_shared();
#else
  extern __shared__ uint4 memory[];
#endif
  return reinterpret_cast<T*>(memory);
}

/// This thread's number in the grid, and the grid's number of threads.
__device__ inline Index grid_thread() noexcept { return Index{blockIdx.x} * blockDim.x + threadIdx.x; }
__device__ inline Index grid_threads() noexcept { return Index{gridDim.x} * blockDim.x; }
/// This warp's number in the grid, the grid's number of warps, and this thread's lane.
__device__ inline Index grid_warp() noexcept { return grid_thread() / warp; }
__device__ inline Index grid_warps() noexcept { return grid_threads() / warp; }
__device__ inline Index lane() noexcept { return threadIdx.x % warp; }

template <class Function>
LOCKSTEP_CUDA_KERNEL void run_elements(Index count, Function f) {
  for (auto i = grid_thread(); i < count; i += grid_threads()) f(i);
}

}  // namespace LOCKSTEP_CUDA_ABI

/// Queues f(i) for each i in [0, count), one thread each. Neither cub::DeviceFor, which CUDA 12.0 does not have, nor
/// Thrust names the operation in errors, counts the launch, or has a kernel that can be loaded before a collective
/// waits.
template <class Function>
void for_elements(char const* name, memory::Stream<CudaSpace> stream, Index count, Function const& f) {
  launch(name, stream, count, run_elements<Function>, count, f);
}

}}}  // namespace lockstep::kernel::detail
