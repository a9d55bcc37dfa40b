// SPDX-License-Identifier: Apache-2.0
#pragma once
/// The part of the CUDA runtime that Lockstep uses, on the host. Device memory is the heap, streams run as in
/// device.hpp, and kernels as in block.hpp. Calls that CUDA refuses during a capture are refused.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "arguments.hpp"
#include "block.hpp"
#include "device.hpp"
#include "error.hpp"

#define LOCKSTEP_CUDA_EMULATION
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))

inline cuda_emulation::Three const& threadIdx = cuda_emulation::position.thread;
inline cuda_emulation::Three const& blockIdx = cuda_emulation::position.block;
inline cuda_emulation::Three const& blockDim = cuda_emulation::position.threads;
inline cuda_emulation::Three const& gridDim = cuda_emulation::position.blocks;

using std::max;
using std::min;

struct dim3 : cuda_emulation::Three {
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)  // NOLINT(google-explicit-constructor)
      : Three{x_size, y_size, z_size} {}
};

/// Read and written over numbers of other types, as on a device.
struct __attribute__((aligned(16), may_alias)) uint4 {
  unsigned x, y, z, w;
};

enum cudaMemcpyKind { cudaMemcpyHostToDevice, cudaMemcpyDeviceToHost, cudaMemcpyDeviceToDevice, cudaMemcpyDefault };
enum cudaStreamCaptureMode { cudaStreamCaptureModeThreadLocal };
enum cudaMemoryType { cudaMemoryTypeUnregistered, cudaMemoryTypeHost, cudaMemoryTypeDevice };
struct cudaPointerAttributes {
  cudaMemoryType type;
};
struct CUevent_st {
  int device;
  unsigned flags;
  std::shared_ptr<cuda_emulation::Event> event = std::make_shared<cuda_emulation::Event>();
  std::optional<cuda_emulation::Device::Captured> captured = {};  // its last place in a capture
};
struct CUgraph_st {
  std::vector<cuda_emulation::Capture::Piece> pieces;
};
struct CUgraphExec_st {
  std::vector<cuda_emulation::Capture::Piece> pieces;
};
using cudaStream_t = CUstream_st*;
using cudaEvent_t = CUevent_st*;
using cudaGraph_t = CUgraph_st*;
using cudaGraphExec_t = CUgraphExec_st*;
inline constexpr unsigned cudaStreamNonBlocking = 1, cudaEventDefault = 0, cudaEventDisableTiming = 2;

enum cudaDeviceAttr {
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrClockRate = 13,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMemoryClockRate = 36,
  cudaDevAttrGlobalMemoryBusWidth = 37,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
namespace cuda_emulation {
inline int compute_capability = 9;  // its first number; a test may choose an older device
/// Shared memory limit of a block on such a device.
inline std::size_t most_shared_bytes() {
  return std::size_t{compute_capability >= 9 ? 227u : compute_capability == 8 ? 163u : 64u} << 10;
}
}  // namespace cuda_emulation
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr which, int) {
  switch (which) {
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = cuda_emulation::default_shared_bytes, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = static_cast<int>(cuda_emulation::most_shared_bytes()), cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      return *value = 2, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = cuda_emulation::compute_capability, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
    case cudaDevAttrClockRate:
    case cudaDevAttrMemoryClockRate:
    case cudaDevAttrGlobalMemoryBusWidth:
      break;
  }
  return *value = 0, cudaSuccess;
}
struct cudaDeviceProp {
  char name[256];
};
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* to, int) { return *to = {"Emulated GPU"}, cudaSuccess; }
inline cudaError_t cudaDeviceGetPCIBusId(char* to, int bytes, int device) {
  return std::snprintf(to, static_cast<std::size_t>(bytes), "0000:%02x:00.0", static_cast<unsigned>(device)),
         cudaSuccess;
}

namespace cuda_emulation {

/// A test may have more devices: they are distinguished by number, and kernels do not read other devices' memory.
inline int devices = 1;
inline int driver = 12080;  // its version, 0 for none
inline thread_local int current_device = 0;
/// A bit for each initialized device: initialization costs hundreds of MiB of a GPU's memory, permanently.
inline std::atomic<unsigned> awake{0};
/// Set by tests: the memory of each device; 0 for more than a test needs.
inline std::atomic<std::size_t> memory_bytes{0};
/// Devices whose memory is taken by other processes, a bit each.
inline std::atomic<unsigned> taken{0};
/// Numbers of kernels and GEMMs that were launched or recorded, of recordings launched, of host waits for a stream or
/// an event, of queued copies, and of recordings and plans of GEMMs that were made.
struct Counts {
  std::atomic<int> kernels{0}, products{0}, recordings{0}, waits{0}, copies{0}, made{0};
};
inline Counts counts;
/// Number of frees by a call that waited for another device, whose work may never come.
inline std::atomic<int> frees_beside_peers{0};
/// Number of frees of device memory while its device had work: CUDA does not promise to wait for it.
inline std::atomic<int> frees_beside_work{0};
/// Number of kernels that were queued on a device while its work waited for another device.
inline std::atomic<int> loads_beside_peers{0};

/// Calls that need a device initialize the current one.
inline void wake() { awake |= 1u << current_device; }

}  // namespace cuda_emulation

inline cudaError_t cudaRuntimeGetVersion(int* version) { return *version = 12040, cudaSuccess; }
inline cudaError_t cudaDriverGetVersion(int* version) { return *version = cuda_emulation::driver, cudaSuccess; }
inline cudaError_t cudaGetDeviceCount(int* devices) {
  if (cuda_emulation::driver < 12040) return cuda_emulation::refuse(cudaErrorInsufficientDriver);
  if (cuda_emulation::devices == 0) return cuda_emulation::refuse(cudaErrorNoDevice);
  return *devices = cuda_emulation::devices, cudaSuccess;
}
inline cudaError_t cudaGetDevice(int* device) { return *device = cuda_emulation::current_device, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) {
  if (device < 0 || device >= cuda_emulation::devices) return cuda_emulation::refuse(cudaErrorInvalidDevice);
  if ((cuda_emulation::taken >> device & 1u) != 0) return cuda_emulation::refuse(cudaErrorMemoryAllocation);
  cuda_emulation::current_device = device;
  return cuda_emulation::wake(), cudaSuccess;
}

/// Peer access between devices: a bit for each readable device.
namespace cuda_emulation {
inline std::array<std::atomic<unsigned>, 32> readers{};
}
inline cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer) {
  auto const there = [](int i) { return i >= 0 && i < cuda_emulation::devices; };
  if (!there(device) || !there(peer)) return cuda_emulation::refuse(cudaErrorInvalidDevice);
  return *can = device == peer ? 0 : 1, cudaSuccess;
}
inline cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  auto const device = cuda_emulation::current_device;
  if (peer < 0 || peer >= cuda_emulation::devices || peer == device)
    return cuda_emulation::refuse(cudaErrorInvalidDevice);
  if (flags != 0) return cuda_emulation::refuse(cudaErrorInvalidValue);
  auto const before = cuda_emulation::readers[static_cast<std::size_t>(device)].fetch_or(1u << peer);
  return (before >> peer & 1u) != 0 ? cuda_emulation::refuse(cudaErrorPeerAccessAlreadyEnabled) : cudaSuccess;
}

namespace cuda_emulation {

/// For calls that are forbidden while this thread captures a stream.
inline bool spoils_capture() {
  auto* const stream = Device::captured();
  if (stream) stream->capture->invalidated = true;
  return stream != nullptr;
}
/// For calls that are allowed meanwhile, except on a captured stream.
inline bool spoils_capture_of(cudaStream_t stream) {
  bool const captured = stream && stream->capture;
  if (captured) stream->capture->invalidated = true;
  return captured;
}
inline cudaError_t refused_in_capture() { return refuse(cudaErrorStreamCaptureUnsupported); }
/// The default stream is the current device's.
inline bool of_current_device(cudaStream_t stream) { return !stream || stream->device == current_device; }
inline cudaError_t queue(cudaStream_t stream, std::function<void()> run) {
  if (!of_current_device(stream)) return refuse(cudaErrorInvalidResourceHandle);
  return wake(), Device::instance().push(stream, {std::move(run), nullptr}), cudaSuccess;
}
/// Whether this many bytes from here on are in one allocation, if they are in any.
inline bool in_one_block(std::optional<Memory::Block> const& block, void const* at, std::size_t bytes) {
  return !block || block->holds(at, bytes);
}
inline bool on_device(std::optional<Memory::Block> const& block) { return block && !block->on_host; }

}  // namespace cuda_emulation

/// Not while any thread captures a stream of the device.
inline cudaError_t cudaDeviceSynchronize() {
  auto& device = cuda_emulation::Device::instance();
  if (cuda_emulation::spoils_capture() || device.spoils_capture_of(cuda_emulation::current_device))
    return cuda_emulation::refused_in_capture();
  return cuda_emulation::wake(), device.finish_all(cuda_emulation::current_device, [] {}), cudaSuccess;
}

namespace cuda_emulation {
/// Set by tests: the limit of simultaneous allocations.
inline std::atomic<std::size_t> largest_block = std::size_t{1} << 40;

/// Size of the workspace for cuBLASLt, which the emulation does not use.
inline constexpr std::size_t cublaslt_workspace_bytes = std::size_t{32} << 20;

inline std::size_t free_bytes() {
  auto const used = Memory::instance().bytes_of(current_device), all = memory_bytes.load();
  return all > used ? all - used : 0;
}
}  // namespace cuda_emulation

/// New memory contains NaNs, except the workspace for cuBLASLt: every stream has one.
inline cudaError_t cuda_emulation_allocate(void** to, std::size_t bytes, bool on_host) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  cuda_emulation::wake();
  bool const fits = on_host || cuda_emulation::memory_bytes == 0 || bytes <= cuda_emulation::free_bytes();
  *to = !fits || bytes > cuda_emulation::largest_block ? nullptr : std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  if (!*to) return cuda_emulation::refuse(cudaErrorMemoryAllocation);
  if (bytes != cuda_emulation::cublaslt_workspace_bytes) std::memset(*to, 0xff, bytes);
  cuda_emulation::Memory::instance().give({static_cast<std::byte*>(*to), bytes, on_host,
                                           &cuda_emulation::Device::instance(), cuda_emulation::current_device});
  return cudaSuccess;
}
/// Waits for the device, as CUDA does. CUDA does not document this for page-locked memory, so no copy may be pending
/// there.
inline cudaError_t cuda_emulation_free(void* memory, bool on_host) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  cuda_emulation::wake();
  if (!memory) return cudaSuccess;
  auto const block = cuda_emulation::Memory::instance().find(memory);
  if (!block || block->begin != memory || block->on_host != on_host)
    return cuda_emulation::refuse(cudaErrorInvalidValue);
  for (auto* const device : {block->device, &cuda_emulation::Device::instance()}) {
    if (on_host && device->copies(block->begin, block->bytes))
      cuda_emulation::refuse_to_go_on("page-locked memory is given back while it is copied");
    if (!on_host && device->copies(block->begin, block->bytes, block->number))
      cuda_emulation::refuse_to_go_on("a device's memory is given back while another one copies it");
    if (!on_host && device->has_work(block->number)) ++cuda_emulation::frees_beside_work;
    auto const waits = [] { ++cuda_emulation::frees_beside_peers; };
    for (int number = 0; number < std::max(cuda_emulation::devices, block->number + 1); ++number)
      if (on_host || number == block->number) device->finish_all(number, waits);
  }
  cuda_emulation::Memory::instance().take_back(*block);
  return std::free(memory), cudaSuccess;
}
inline cudaError_t cudaMalloc(void** to, std::size_t bytes) { return cuda_emulation_allocate(to, bytes, false); }
template <class T>
cudaError_t cudaMalloc(T** to, std::size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(to), bytes);
}
inline cudaError_t cudaFree(void* memory) { return cuda_emulation_free(memory, false); }
inline cudaError_t cudaMallocHost(void** to, std::size_t bytes) { return cuda_emulation_allocate(to, bytes, true); }
inline cudaError_t cudaFreeHost(void* memory) { return cuda_emulation_free(memory, true); }

namespace cuda_emulation {
/// Set by tests: existing host memory cannot be page-locked.
inline std::atomic<bool> refuses_page_locks{false};
}  // namespace cuda_emulation

inline constexpr unsigned cudaHostRegisterDefault = 0;
/// No byte is locked twice.
inline cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned flags) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  if (!memory || bytes == 0 || flags != cudaHostRegisterDefault) return cuda_emulation::refuse(cudaErrorInvalidValue);
  if (cuda_emulation::refuses_page_locks) return cuda_emulation::refuse(cudaErrorNotSupported);
  cuda_emulation::wake();
  auto& all = cuda_emulation::Memory::instance();
  auto* const begin = static_cast<std::byte*>(memory);
  if (all.find(begin) || all.find(begin + bytes - 1))
    return cuda_emulation::refuse(cudaErrorHostMemoryAlreadyRegistered);
  return all.give({begin, bytes, true, &cuda_emulation::Device::instance(), cuda_emulation::current_device}),
         cudaSuccess;
}
inline cudaError_t cudaHostUnregister(void* memory) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  auto const block = cuda_emulation::Memory::instance().find(memory);
  if (!block || block->begin != memory || !block->on_host)
    return cuda_emulation::refuse(cudaErrorHostMemoryNotRegistered);
  for (auto* const device : {block->device, &cuda_emulation::Device::instance()})
    if (device->copies(block->begin, block->bytes))
      cuda_emulation::refuse_to_go_on("memory is no longer page-locked while it is copied");
  return cuda_emulation::Memory::instance().take_back(*block), cudaSuccess;
}
inline cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  bool const limited = cuda_emulation::memory_bytes > 0;
  *free = limited ? cuda_emulation::free_bytes() : std::size_t{3} << 29;
  *total = limited ? cuda_emulation::memory_bytes.load() : std::size_t{2} << 30;
  return cudaSuccess;
}
inline cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, void const* memory) {
  auto const block = cuda_emulation::Memory::instance().find(memory);
  attributes->type = !block ? cudaMemoryTypeUnregistered : block->on_host ? cudaMemoryTypeHost : cudaMemoryTypeDevice;
  return cudaSuccess;
}

namespace cuda_emulation {
/// Fills memory of the heap. Whole pages of zeros are given back to the system, which is faster if few are used later.
inline void fill(void* to, int value, std::size_t bytes) {
  constexpr std::size_t page = 4096, many = std::size_t{1} << 20;
  auto* const begin = static_cast<std::byte*>(to);
  std::size_t head = bytes, pages = 0;
  if (value == 0 && bytes >= many) {
    head = (page - reinterpret_cast<std::uintptr_t>(to) % page) % page;
    pages = (bytes - head) / page * page;
    if (madvise(begin + head, pages, MADV_DONTNEED) != 0) head = bytes, pages = 0;
  }
  std::memset(begin, value, head);
  std::memset(begin + head + pages, value, bytes - head - pages);
}
}  // namespace cuda_emulation

inline cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  auto const block = cuda_emulation::Memory::instance().find(to);
  if (!block || !block->holds(to, bytes)) return cuda_emulation::refuse(cudaErrorInvalidValue);
  return cuda_emulation::queue(stream, [=] { cuda_emulation::fill(to, value, bytes); });
}
inline cudaError_t cudaMemset(void* to, int value, std::size_t bytes) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  return cudaMemsetAsync(to, value, bytes, nullptr);
}
/// Not while any thread captures the stream.
inline cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  ++cuda_emulation::counts.waits;
  auto& device = cuda_emulation::Device::instance();
  if (cuda_emulation::spoils_capture() || (stream && device.spoils_capture_of(stream->device, stream)))
    return cuda_emulation::refused_in_capture();
  return device.finish(device.of(stream)), cudaSuccess;
}

namespace cuda_emulation {

/// Errors that CUDA reports at once.
inline cudaError_t copyable(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  auto const to_block = Memory::instance().find(to), from_block = Memory::instance().find(from);
  if (!in_one_block(to_block, to, bytes) || !in_one_block(from_block, from, bytes))
    return refuse(cudaErrorInvalidValue);
  if (kind == cudaMemcpyDefault) return cudaSuccess;
  bool const goes_to_device = kind != cudaMemcpyDeviceToHost, comes_from_device = kind != cudaMemcpyHostToDevice;
  bool const as_said = on_device(to_block) == goes_to_device && on_device(from_block) == comes_from_device;
  return as_said ? cudaSuccess : refuse(cudaErrorInvalidMemcpyDirection);
}

}  // namespace cuda_emulation

inline cudaError_t cudaMemcpy(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (auto const status = cudaStreamSynchronize(nullptr); status != cudaSuccess || bytes == 0) return status;
  if (auto const status = cuda_emulation::copyable(to, from, bytes, kind); status != cudaSuccess) return status;
  return cuda_emulation::wake(), std::memmove(to, from, bytes), cudaSuccess;
}
/// Pageable memory is read or written before the call returns; other memory at execution. The stream may belong to
/// another device than the current one.
inline cudaError_t cudaMemcpyAsync(void* to, void const* from, std::size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  if (bytes == 0) return cudaSuccess;
  ++cuda_emulation::counts.copies;
  if (auto const status = cuda_emulation::copyable(to, from, bytes, kind); status != cudaSuccess) return status;
  auto& device = cuda_emulation::Device::instance();
  auto& memory = cuda_emulation::Memory::instance();
  bool const from_pageable = !memory.find(from), to_pageable = !memory.find(to);
  if ((from_pageable || to_pageable) && cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  if (from_pageable) {
    auto const* const bytes_from = static_cast<std::byte const*>(from);
    std::vector<std::byte> staged(bytes_from, bytes_from + bytes);
    return device.push(stream, {[=] { std::memcpy(to, staged.data(), staged.size()); }, nullptr}), cudaSuccess;
  }
  cuda_emulation::Work copy{[=] { std::memmove(to, from, bytes); }, nullptr};
  copy.from = from, copy.to = to;
  device.push(stream, std::move(copy));
  return to_pageable ? cudaStreamSynchronize(stream) : cudaSuccess;
}

/// None that waits for the default stream.
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  if (flags != cudaStreamNonBlocking) return cuda_emulation::refuse(cudaErrorInvalidValue);
  cuda_emulation::wake();
  return *stream = cuda_emulation::Device::instance().add_stream(cuda_emulation::current_device), cudaSuccess;
}
/// The greatest priority is the smallest number.
inline cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  cuda_emulation::wake();
  return *least = 0, *greatest = -5, cudaSuccess;
}
inline cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags, int priority) {
  auto const status = cudaStreamCreateWithFlags(stream, flags);
  if (status == cudaSuccess) (*stream)->priority = std::clamp(priority, -5, 0);
  return status;
}
inline cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return *priority = stream ? stream->priority : 0, cudaSuccess;
}
/// CUDA does not wait for the stream's work: destroying its resources directly afterwards is an error.
inline cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return cuda_emulation::Device::instance().remove(stream), cudaSuccess;
}
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  cuda_emulation::wake();
  return *event = new CUevent_st{.device = cuda_emulation::current_device, .flags = flags}, cudaSuccess;
}
inline cudaError_t cudaEventDestroy(cudaEvent_t event) { return delete event, cudaSuccess; }
/// An event is recorded by streams of its own device; others may wait for it.
inline cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  auto const device = stream ? stream->device : cuda_emulation::current_device;
  if (event->device != device) return cuda_emulation::refuse(cudaErrorInvalidResourceHandle);
  event->captured.reset();
  if (stream && stream->capture)
    return event->captured = cuda_emulation::Device::instance().record_captured(*stream), cudaSuccess;
  return cuda_emulation::Device::instance().record(stream, event->event), cudaSuccess;
}
inline constexpr unsigned cudaEventRecordDefault = 0, cudaEventRecordExternal = 1;
inline cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream, unsigned flags) {
  if (flags == cudaEventRecordDefault) return cudaEventRecord(event, stream);
  if (!stream || !stream->capture) return cuda_emulation::refuse(cudaErrorInvalidValue);  // it is for recordings only
  if (event->device != stream->device) return cuda_emulation::refuse(cudaErrorInvalidResourceHandle);
  cuda_emulation::Work work;
  work.marks = event->event;
  return cuda_emulation::Device::instance().push(stream, std::move(work)), cudaSuccess;
}
enum cudaStreamCaptureStatus { cudaStreamCaptureStatusNone, cudaStreamCaptureStatusActive };
inline cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  *status = stream && stream->capture ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
/// An event that was never recorded is not waited for. A stream that waits for an event of a capture is captured, too.
inline cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned) {
  auto const capture = event->captured ? event->captured->capture.lock() : nullptr;
  if (event->captured && (!capture || !stream || (stream->capture && stream->capture != capture)))
    return cuda_emulation::spoils_capture_of(stream), cuda_emulation::refuse(cudaErrorCapturedEvent);
  if (capture) return cuda_emulation::Device::instance().wait_captured(*stream, *event->captured, capture), cudaSuccess;
  if (cuda_emulation::spoils_capture_of(stream)) return cuda_emulation::refused_in_capture();
  return cuda_emulation::Device::instance().wait(stream, event->event), cudaSuccess;
}
inline cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  ++cuda_emulation::counts.waits;
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  return cuda_emulation::Device::instance().finish(*event->event), cudaSuccess;
}
/// A millisecond for each operation in between.
inline cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end) {
  bool const timed = begin->flags == cudaEventDefault && end->flags == cudaEventDefault;
  if (!timed || begin->device != end->device || begin->event->recorded == 0 || end->event->recorded == 0)
    return cuda_emulation::refuse(cudaErrorInvalidResourceHandle);
  auto const passed = cuda_emulation::Device::instance().between(*begin->event, *end->event);
  *milliseconds = static_cast<float>(passed);
  return passed < 0 ? cuda_emulation::refuse(cudaErrorNotReady) : cudaSuccess;
}
inline cudaError_t cudaEventQuery(cudaEvent_t event) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  if (cuda_emulation::Device::instance().has_reached(*event->event)) return cudaSuccess;
  return cuda_emulation::refuse(cudaErrorNotReady);
}

inline cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode) {
  if (!stream || cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  return cuda_emulation::Device::instance().begin_capture(*stream), cudaSuccess;
}
/// The first stream waits for the other streams' captured work.
inline cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  *graph = nullptr;
  if (stream->branch != 0 && stream->capture) return cuda_emulation::refuse(cudaErrorStreamCaptureUnmatched);
  auto const capture = cuda_emulation::Device::instance().end_capture(*stream);
  if (!capture || capture->invalidated) return cuda_emulation::refuse(cudaErrorStreamCaptureInvalidated);
  if (!capture->is_joined()) return cuda_emulation::refuse(cudaErrorStreamCaptureUnjoined);
  *graph = new CUgraph_st{std::move(capture->pieces)};
  return cudaSuccess;
}
inline cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long = 0) {
  ++cuda_emulation::counts.made;
  return *executable = new CUgraphExec_st{graph->pieces}, cudaSuccess;
}
inline cudaError_t cudaGraphDestroy(cudaGraph_t graph) { return delete graph, cudaSuccess; }
inline cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable) { return delete executable, cudaSuccess; }
inline cudaError_t cudaGraphUpload(cudaGraphExec_t, cudaStream_t) {
  if (cuda_emulation::spoils_capture()) return cuda_emulation::refused_in_capture();
  return cudaSuccess;
}
inline cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream) {
  ++cuda_emulation::counts.recordings;
  return cuda_emulation::Device::instance().push(stream, executable->pieces), cudaSuccess;
}

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
};
namespace cuda_emulation {

inline bool is_of_another_device(void const* address) {
  auto const block = Memory::instance().find(address);
  return on_device(block) && (block->device != &Device::instance() || block->number != current_device);
}
/// Padding may look like an address: it is zeroed first, in a copy, because g++ 12 overestimates padding. If the
/// compiler cannot do that, arguments with padding are skipped.
#if defined(__has_builtin) && __has_builtin(__builtin_clear_padding)
#define LOCKSTEP_CLEAR_PADDING(value) __builtin_clear_padding(&(value))
inline constexpr bool padding_is_cleared = true;
#else
#define LOCKSTEP_CLEAR_PADDING(value) static_cast<void>(value)
inline constexpr bool padding_is_cleared = false;
#endif
/// Whether an argument has such an address, as a pointer or in a view.
inline bool reaches_another_device(Argument const& argument, void const* cleared) {
  if (!argument.is_unique && !padding_is_cleared) return false;
  std::vector<void const*> words(argument.bytes / sizeof(void*));
  if (!words.empty()) std::memcpy(words.data(), cleared, words.size() * sizeof(void*));
  return std::any_of(words.begin(), words.end(), is_of_another_device);
}

/// A library's handle is used, and destroyed, while its device is current.
class OfDevice {
 public:
  OfDevice() = default;
  OfDevice(OfDevice const&) = delete;
  OfDevice& operator=(OfDevice const&) = delete;
  ~OfDevice() {
    if (is_current()) return;
    refuse_to_go_on("a handle of one device is destroyed while another is current");
  }
  [[nodiscard]] bool is_current() const noexcept { return device_ == &Device::instance() && number_ == current_device; }

 private:
  Device* device_ = &Device::instance();
  int number_ = current_device;
};

}  // namespace cuda_emulation

namespace cuda_emulation {
inline void load(Kernel const& kernel) {
  if (Device::instance().loads_beside_another_device(current_device, kernel.address())) ++loads_beside_peers;
}
}  // namespace cuda_emulation

struct cudaFuncAttributes {
  int numRegs;
};
template <class... Parameters>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, void (*kernel)(Parameters...)) {
  cuda_emulation::wake();
  cuda_emulation::load(cuda_emulation::Kernel(kernel));
  return *attributes = {}, cudaSuccess;
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
/// Allows the kernel that much dynamic shared memory on the current device. CUDA counts static shared memory, too,
/// whose size the emulation does not know.
template <class... Parameters>
cudaError_t cudaFuncSetAttribute(void (*kernel)(Parameters...), cudaFuncAttribute which, int value) {
  cuda_emulation::wake();
  cuda_emulation::Kernel const erased(kernel);
  cuda_emulation::load(erased);
  if (which != cudaFuncAttributeMaxDynamicSharedMemorySize || value < 0 ||
      static_cast<std::size_t>(value) > cuda_emulation::most_shared_bytes())
    return cuda_emulation::refuse(cudaErrorInvalidValue);
  cuda_emulation::Device::instance().allow_shared(cuda_emulation::current_device, erased.address(),
                                                  static_cast<std::size_t>(value));
  return cudaSuccess;
}

namespace cuda_emulation {

/// Grids have two dimensions. Another device's address, which a GPU detects later, is detected at once.
inline cudaError_t launch(cudaLaunchConfig_t const& config, Kernel const& kernel, std::vector<std::byte> const& values,
                          void const* const* cleared) {
  auto const& grid = config.gridDim;
  auto const& block = config.blockDim;
  bool const valid = grid.x > 0 && grid.x < 1u << 31 && grid.y > 0 && grid.y < 1u << 16 && grid.z == 1 && block.x > 0 &&
                     block.y > 0 && std::uint64_t{block.x} * block.y <= max_threads && block.z == 1;
  if (!valid) return refuse(cudaErrorInvalidConfiguration);
  auto const allowed = Device::instance().allowed_shared(current_device, kernel.address());
  if (config.dynamicSmemBytes > allowed.value_or(default_shared_bytes)) return refuse(cudaErrorInvalidValue);
  for (auto const& argument : kernel.arguments)
    if (reaches_another_device(argument, *cleared++)) return refuse(cudaErrorIllegalAddress);
  check_arguments(kernel.arguments, values.data());
  load(kernel);
  ++counts.kernels;
  return queue(config.stream, [=, shared = config.dynamicSmemBytes] {
    check_arguments(kernel.arguments, values.data());  // a recording may be older than its memory
    run(grid, block, shared, {kernel.call, kernel.function, values.data()});
  });
}

}  // namespace cuda_emulation

template <class... Parameters>
cudaError_t cudaLaunchKernelEx(cudaLaunchConfig_t const* config, void (*kernel)(Parameters...),
                               std::type_identity_t<Parameters>... arguments) {
  static_assert((std::is_trivially_copy_constructible_v<Parameters> && ...), "arguments are copied byte by byte");
  static_assert((std::size_t{0} + ... + sizeof(Parameters)) <= cuda_emulation::most_argument_bytes);
  cuda_emulation::Kernel const erased(kernel);
  void const* const each[] = {&arguments..., nullptr};
  auto const values = cuda_emulation::values_of(erased.arguments, each);
  (LOCKSTEP_CLEAR_PADDING(arguments), ...);
  return cuda_emulation::launch(*config, erased, values, each);
}

inline void __syncthreads(char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_emulation::wait_for_block({file, line});
}
inline void __syncwarp(unsigned mask = ~0u, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  cuda_emulation::wait_for_warp(mask, {file, line});
}
template <class T>
T __shfl_xor_sync(unsigned mask, T value, unsigned distance, char const* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  return cuda_emulation::exchange(mask, value, cuda_emulation::lane() ^ distance, {file, line});
}

template <class T>
T __shfl_sync(unsigned mask, T value, int source, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return cuda_emulation::exchange(mask, value, static_cast<unsigned>(source), {file, line});
}

inline unsigned __ballot_sync(unsigned mask, int predicate, char const* file = __builtin_FILE(),
                              int line = __builtin_LINE()) {
  return cuda_emulation::ballot(mask, predicate != 0, {file, line});
}
inline int __any_sync(unsigned mask, int predicate, char const* file = __builtin_FILE(), int line = __builtin_LINE()) {
  return __ballot_sync(mask, predicate, file, line) != 0 ? 1 : 0;
}

inline void __stwb(uint4* to, uint4 value) {
  if (reinterpret_cast<std::uintptr_t>(to) % sizeof *to != 0)
    cuda_emulation::refuse_to_go_on("16 bytes are written to an address that is not aligned");
  *to = value;
}

inline void __nanosleep(unsigned) {}

inline float __fmul_rn(float a, float b) { return a * b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmaf_rn(float a, float b, float c) { return std::fma(a, b, c); }
inline double __dadd_rn(double a, double b) { return a + b; }
