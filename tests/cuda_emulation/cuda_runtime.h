// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What Lockstep uses of CUDA's runtime, on the host: device memory is the heap, every stream is done at once, kernels
/// run as block.hpp says.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <tuple>
#include <utility>

#include "block.hpp"

#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

inline cuda_emulation::Three const& threadIdx = cuda_emulation::Machine::instance().thread;
inline cuda_emulation::Three const& blockIdx = cuda_emulation::Machine::instance().block;
inline cuda_emulation::Three const& blockDim = cuda_emulation::Machine::instance().threads;
inline cuda_emulation::Three const& gridDim = cuda_emulation::Machine::instance().blocks;

using std::max;
using std::min;

struct dim3 : cuda_emulation::Three {
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)  // NOLINT(google-explicit-constructor)
      : Three{x_size, y_size, z_size} {}
};
struct float2 {
  float x, y;
};
struct alignas(16) float4 {
  float x, y, z, w;
};

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
struct CUstream_st;
struct CUevent_st;
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDisableTiming = 2;

inline char const* cudaGetErrorString(cudaError_t error) {
  switch (error) {
    case cudaSuccess:
      return "no error";
    case cudaErrorInvalidValue:
      return "invalid argument";
    case cudaErrorMemoryAllocation:
      return "out of memory";
    case cudaErrorInvalidConfiguration:
      return "invalid configuration argument";
  }
  return "unknown error";
}
inline char const* cudaGetErrorName(cudaError_t) { return "emulated"; }
inline cudaError_t cudaGetLastError() { return cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* devices) { return *devices = 1, cudaSuccess; }
inline cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }

/// Fresh device memory holds nans, like as not.
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  *to = bytes > std::size_t{1} << 40 ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (*to) std::memset(*to, 0xff, bytes);
  return *to ? cudaSuccess : cudaErrorMemoryAllocation;
}
template <class T>
cudaError_t cudaMalloc(T** to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(to), bytes);
}
inline cudaError_t cudaFree(void* memory) { return std::free(memory), cudaSuccess; }
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return cudaMalloc(to, bytes); }
inline cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  return std::memset(to, value, bytes), cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(to, value, bytes);
}
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind) {
  return std::memmove(to, from, bytes), cudaSuccess;
}
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind, cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned) { return cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) { return *event = nullptr, cudaSuccess; }
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
template <class... Parameters, class... Arguments>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  auto const& grid = config->gridDim;
  auto const& block = config->blockDim;
  bool const valid = grid.x > 0 && grid.y > 0 && grid.y < 65536 && grid.z == 1 && block.x * block.y > 0 &&
                     block.x * block.y <= cuda_emulation::most_threads && block.z == 1;
  if (!valid) return cudaErrorInvalidConfiguration;
  std::tuple<Parameters...> const values(std::forward<Arguments>(arguments)...);
  auto body = [&] { std::apply(kernel, values); };
  cuda_emulation::Machine::instance().run(grid, block, body);
  return cudaSuccess;
}

inline void __syncthreads() { cuda_emulation::Machine::instance().wait_for_block(); }
inline void __syncwarp() { cuda_emulation::Machine::instance().wait_for_warp(); }
template <class T>
T __shfl_sync(unsigned, T value, unsigned lane) {
  return cuda_emulation::Machine::instance().exchange(value, lane);
}
template <class T>
T __shfl_xor_sync(unsigned, T value, unsigned mask) {
  auto& machine = cuda_emulation::Machine::instance();
  return machine.exchange(value, machine.lane() ^ mask);
}

inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
