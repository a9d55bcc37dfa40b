// SPDX-License-Identifier: Apache-2.0
#pragma once
/// What Lockstep uses of CUDA's runtime, on the host: device memory is the heap, streams go on as device.hpp says,
/// kernels run as block.hpp says. What CUDA refuses while a stream is captured is refused.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

#include "block.hpp"
#include "device.hpp"

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
  cudaErrorInvalidDevice = 101,
  cudaErrorNotReady = 600,
  cudaErrorStreamCaptureUnsupported = 900,
  cudaErrorStreamCaptureInvalidated = 901,
};
enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
  cudaMemoryType type;
};
struct CUevent_st {
  std::shared_ptr<cuda_emulation::Event> event = std::make_shared<cuda_emulation::Event>();
};
struct CUgraph_st {
  std::vector<cuda_emulation::Work> work;
};
struct CUgraphExec_st {
  std::vector<cuda_emulation::Work> work;
};
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

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
    case cudaErrorInvalidDevice:
      return "invalid device ordinal";
    case cudaErrorNotReady:
      return "device not ready";
    case cudaErrorStreamCaptureUnsupported:
      return "operation not permitted when stream is capturing";
    case cudaErrorStreamCaptureInvalidated:
      return "operation failed due to a previous error during capture";
  }
  return "unknown error";
}
inline char const* cudaGetErrorName(cudaError_t) { return "emulated"; }
inline cudaError_t cudaDeviceGetPCIBusId(char* to, int bytes, int device) {
  return std::snprintf(to, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(device)),
         cudaSuccess;
}

namespace cuda_emulation {

/// Of the calling thread: what its last call that did not succeed has said, be it only that something is not ready.
inline thread_local cudaError_t last_error = cudaSuccess;
inline cudaError_t refuse(cudaError_t why) { return last_error = why; }

}  // namespace cuda_emulation

inline cudaError_t cudaPeekAtLastError() { return cuda_emulation::last_error; }
inline cudaError_t cudaGetLastError() { return std::exchange(cuda_emulation::last_error, cudaSuccess); }

namespace cuda_emulation {

/// A test may have more devices: by number they are apart, but their memory is one.
inline int devices = 1;
inline thread_local int current_device = 0;

}  // namespace cuda_emulation

inline cudaError_t cudaGetDeviceCount(int* devices) { return *devices = cuda_emulation::devices, cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = cuda_emulation::current_device, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= cuda_emulation::devices) return cuda_emulation::refuse(cudaErrorInvalidDevice);
  return cuda_emulation::current_device = device, cudaSuccess;
}

namespace cuda_emulation {

/// For calls that may not be made while this thread captures a stream.
inline bool spoils_capture() {
  auto* const stream = Device::captured();
  if (stream) stream->spoiled = true;
  return stream != nullptr;
}
template <class F>
cudaError_t queue(cudaStream_t stream, F&& run) {
  return Device::instance().push(stream, {std::forward<F>(run), nullptr}), cudaSuccess;
}

}  // namespace cuda_emulation

inline cudaError_t cudaDeviceSynchronize() {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  return cuda_emulation::Device::instance().finish_all(), cudaSuccess;
}

/// Fresh device memory holds nans, like as not.
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  *to = bytes > std::size_t{1} << 40 ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*to) return cuda_emulation::refuse(cudaErrorMemoryAllocation);
  std::memset(*to, 0xff, bytes);
  return cuda_emulation::Device::instance().give(*to, bytes, false), cudaSuccess;
}
template <class T>
cudaError_t cudaMalloc(T** to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(to), bytes);
}
/// Waits for the device, as CUDA does.
inline cudaError_t cudaFree(void* memory) {
  if (auto const status = cudaDeviceSynchronize(); status != cudaSuccess) return status;
  cuda_emulation::Device::instance().take_back(memory);
  return std::free(memory), cudaSuccess;
}
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) {
  auto const status = cudaMalloc(to, bytes);
  if (status == cudaSuccess) cuda_emulation::Device::instance().give(*to, bytes, true);
  return status;
}
inline cudaError_t cudaFreeHost(void* memory) { return cudaFree(memory); }
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* memory) {
  auto const* const given = cuda_emulation::Device::instance().given(memory);
  attributes->type = !given ? cudaMemoryTypeUnregistered : given->on_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  return cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  return cuda_emulation::queue(stream, [=] { std::memset(to, value, bytes); });
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  auto& device = cuda_emulation::Device::instance();
  return device.finish(device.of(stream)), cudaSuccess;
}
inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind) {
  if (auto const status = cudaStreamSynchronize(nullptr); status != cudaSuccess || bytes == 0) return status;
  return std::memmove(to, from, bytes), cudaSuccess;
}
/// Pageable memory is read before the call returns, and written before it returns; other memory when its time comes.
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  auto& device = cuda_emulation::Device::instance();
  bool const from_pageable = !device.given(from), to_pageable = !device.given(to);
  if ((from_pageable || to_pageable) && cuda_emulation::spoils_capture())
    return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  if (from_pageable) {
    auto const* const bytes_from = static_cast<std::byte const*>(from);
    std::vector<std::byte> staged(bytes_from, bytes_from + bytes);
    return cuda_emulation::queue(stream, [=] { std::memcpy(to, staged.data(), staged.size()); });
  }
  cuda_emulation::queue(stream, [=] { std::memmove(to, from, bytes); });
  return to_pageable ? cudaStreamSynchronize(stream) : cudaSuccess;
}

inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return *stream = cuda_emulation::Device::instance().add_stream(), cudaSuccess;
}
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return cuda_emulation::Device::instance().remove(stream), cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return *event = new CUevent_st, cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  if (cuda_emulation::spoils_capture())
    return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);  // we capture one stream at a time
  return cuda_emulation::Device::instance().record(stream, event->event), cudaSuccess;
}
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventRecordExternal = 1;
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  if (!stream || !stream->capture) return cuda_emulation::refuse(cudaErrorInvalidValue);  // it is for recordings only
  cuda_emulation::Work work;
  work.marks = event->event;
  return cuda_emulation::Device::instance().push(stream, std::move(work)), cudaSuccess;
}
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream && stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  return cuda_emulation::Device::instance().wait(stream, event->event), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  return cuda_emulation::Device::instance().finish(*event->event), cudaSuccess;
}
/// A millisecond for each piece of work that was done meanwhile.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  auto const passed = cuda_emulation::Device::instance().between(*begin->event, *end->event);
  *milliseconds = static_cast<float>(passed);
  return passed < 0 ? cuda_emulation::refuse(cudaErrorNotReady) : cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  if (cuda_emulation::Device::instance().has_reached(*event->event)) return cudaSuccess;
  return cuda_emulation::refuse(cudaErrorNotReady);
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || cuda_emulation::spoils_capture()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnsupported);
  stream->capture = new std::vector<cuda_emulation::Work>;
  stream->spoiled = false;
  cuda_emulation::Device::captured() = stream;
  return cudaSuccess;
}
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  std::unique_ptr<std::vector<cuda_emulation::Work>> const work(std::exchange(stream->capture, nullptr));
  if (cuda_emulation::Device::captured() == stream) cuda_emulation::Device::captured() = nullptr;
  *graph = nullptr;
  if (!work || stream->spoiled) return cuda_emulation::refuse(cudaErrorStreamCaptureInvalidated);
  *graph = new CUgraph_st{std::move(*work)};
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long = 0) {
  return *executable = new CUgraphExec_st{graph->work}, cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  for (auto const& work : executable->work) cuda_emulation::Device::instance().push(stream, work);
  return cudaSuccess;
}

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
  if (!valid) return cuda_emulation::refuse(cudaErrorInvalidConfiguration);
  std::tuple<Parameters...> const values(std::forward<Arguments>(arguments)...);
  return cuda_emulation::queue(config->stream, [=] {
    auto body = [&] { std::apply(kernel, values); };
    cuda_emulation::Machine::instance().run(grid, block, body);
  });
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
