// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <thread>
#include <utility>

#include <lockstep/core/error.hpp>
#include <lockstep/core/persistent_objects.hpp>
#include <lockstep/core/start_thread.hpp>
#include <lockstep/memory/detail/check_cuda.cuh>
#include <lockstep/memory/resource.hpp>
#include <lockstep/memory/stream.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Memory of the current device, zeroed. Release does not wait: synchronize first.
/// @throws CudaError, naming the requested and the free bytes
class CudaResource {
 public:
  /// Returns zeroed memory on the current device; an empty block for 0 bytes. Waits for the device to clear it.
  /// @throws CudaError, naming the requested and the free bytes
  [[nodiscard]] Block allocate(std::size_t bytes) const {
    if (bytes == 0) return {};
    void* data = nullptr;
    if (auto const status = cudaMalloc(&data, bytes); status != cudaSuccess)
      detail::check_cuda_memory(status, "cudaMalloc", bytes,
                                detail::free_cuda_memory() +
                                    "smaller batches (--batch-size) with more accumulation steps (--grad-accum-steps) "
                                    "need less, and so do nn::InBfloat16 (--precision bf16), nn::InFloat16 and "
                                    "nn::Recompute; nvidia-smi lists other processes that use the GPU");
    Block block(static_cast<std::byte*>(data), bytes, [](void*, std::byte* p, std::size_t) noexcept { cudaFree(p); });
    check_cuda(cudaMemset(data, 0, bytes), "cudaMemset");
    check_cuda(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");  // our streams do not wait for the default one
    return block;
  }
};
static_assert(MemoryResource<CudaResource>);

/// Page-locked host memory, which devices read and write while the processor continues. Allocates for the device that
/// was current when the resource was made. May be called from any thread, without initializing a device for it.
/// @throws CudaError, naming the requested bytes
class PinnedResource {
 public:
  /// Stores the current device.   @throws CudaError
  PinnedResource() { check_cuda(cudaGetDevice(&device_), "cudaGetDevice"); }

  /// Returns zeroed page-locked memory; an empty block for 0 bytes.   @throws CudaError, naming the requested bytes
  [[nodiscard]] Block allocate(std::size_t bytes) const {
    if (bytes == 0) return {};
    void* data = nullptr;
    auto const status = on_device(device_, [&] { return cudaMallocHost(&data, bytes); });
    detail::check_cuda_memory(status, "cudaMallocHost", bytes, "smaller batches or a smaller `prefetch` need less");
    std::memset(data, 0, bytes);
    return {static_cast<std::byte*>(data), bytes, &release, reinterpret_cast<void*>(std::intptr_t{device_})};
  }

 private:
  /// Returns the result of call() on a new thread. The calling thread may have no device yet. Any CUDA call, also one
  /// that frees memory, would initialize the first device for it, at a cost of some hundred MiB of device memory.
  template <class Call>
  static cudaError_t on_device(int device, Call const& call) {
    auto status = cudaSuccess;
    start_thread("PinnedResource", "a thread that calls CUDA for pinned memory", [&] {
      status = cudaSetDevice(device);
      if (status == cudaSuccess) status = call();
    }).join();
    return status;
  }
  static void release(void* device, std::byte* data, std::size_t) noexcept {
    try {
      on_device(static_cast<int>(reinterpret_cast<std::intptr_t>(device)), [data] { return cudaFreeHost(data); });
    } catch (ConfigError const&) {  // no thread available
      cudaFreeHost(data);
    }
  }

  int device_ = 0;
};
static_assert(MemoryResource<PinnedResource>);

/// Default resource for large memory of a device.
template <>
struct DefaultResourceOf<CudaSpace> {
  using type = CudaResource;  ///< default of device memory
};

/// Work that was queued on a stream, counted on the host. Work that is recorded counts when it is recorded.
struct QueuedWork {
  double kernels = 0;          ///< launches; a matrix product counts as one
  double operations = 0;       ///< multiplications and additions of matrix products whose factors have over 16 bits
  double half_operations = 0;  ///< of matrix products whose factors have 16 bits

  /// Counts matrix products with factors of `element_bytes` bytes. A product of doubles counts twice.
  void add_products(double count, std::size_t element_bytes) noexcept {
    (element_bytes == 2 ? half_operations : operations) += element_bytes == 8 ? 2 * count : count;
  }
  /// Adds the counts of other work.
  QueuedWork& operator+=(QueuedWork const& other) noexcept {
    kernels += other.kernels;
    operations += other.operations;
    half_operations += other.half_operations;
    return *this;
  }
  /// Returns the work since `before`.
  [[nodiscard]] QueuedWork since(QueuedWork const& before) const noexcept {
    return {kernels - before.kernels, operations - before.operations, half_operations - before.half_operations};
  }
};

namespace detail {

/// Objects and counts that belong to a CudaStream.
struct CudaStreamState {
  PersistentObjects persistent;
  QueuedWork queued;
};

}  // namespace detail

/// A kernel's view of a CudaStream: work runs in order, after the call that queued it has returned. Cheap to copy; does
/// not own. Used by one thread at a time.
template <>
class Stream<CudaSpace> {
 public:
  /// Returns the handle, for calls of CUDA.
  [[nodiscard]] cudaStream_t get() const noexcept { return stream_; }
  /// Waits for all queued work.
  /// @throws CudaError for any failure since the last check
  void synchronize() const { check_cuda(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }
  /// Returns the stream's own Value, made at the first call: handles, plans and small memory that kernels keep between
  /// calls.
  template <class Value>
  [[nodiscard]] Value& persistent() const {
    return state_->persistent.of<Value>(nullptr);
  }

  /// Returns a stream for parallel work, the same one each time. Its work starts after the work queued here so far;
  /// work here does not wait for it before `join`. If this stream's work is being recorded, so is the parallel work.
  [[nodiscard]] Stream fork() const;
  /// Makes work queued from now on wait for all parallel work. Does nothing if there is none.
  void join() const;

  /// Call it after you replace memory that this stream's work uses: invalidates recordings of the work.
  void memory_moved() const { ++persistent<MemoryVersion>().number; }
  /// Returns how often memory_moved has been called. A recording is valid while the number is unchanged.
  [[nodiscard]] std::uint64_t memory_version() const { return persistent<MemoryVersion>().number; }

  /// Returns the count of the work queued here so far, for kernels to add to. Parallel work is added by `join`.
  [[nodiscard]] QueuedWork& queued() const noexcept { return state_->queued; }

 private:
  friend class CudaStream;
  struct MemoryVersion {
    std::uint64_t number = 0;
  };
  Stream(cudaStream_t stream, detail::CudaStreamState* state) noexcept : stream_(stream), state_(state) {}

  cudaStream_t stream_;
  detail::CudaStreamState* state_;
};

/// Owns a CUDA stream that does not wait for the default stream, and the objects that kernels keep with it. All belong
/// to the device that was current when it was made. The destructor waits for queued work.
class [[nodiscard]] CudaStream {
 public:
  /// Order in which a device starts the waiting blocks of kernels on different streams.
  enum class Priority {
    normal,   ///< the device's lowest priority
    highest,  ///< the device's highest priority
  };

  /// Makes a stream of normal priority on the current device.   @throws CudaError
  CudaStream() : CudaStream(Priority::normal) {}
  /// Makes a stream on the current device.   @throws CudaError
  explicit CudaStream(Priority priority) : state_(std::make_unique<detail::CudaStreamState>()) {
    check_cuda(cudaGetDevice(&device_), "cudaGetDevice");
    int least = 0, greatest = 0;
    check_cuda(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
    check_cuda(
        cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, priority == Priority::highest ? greatest : least),
        "cudaStreamCreateWithPriority");
  }
  ~CudaStream() {
    if (!state_) return;
    int before = device_;
    cudaGetDevice(&before);
    cudaSetDevice(device_);          // library handles need the device that they were made for
    cudaStreamSynchronize(stream_);  // queued work may use kept objects
    state_.reset();
    cudaStreamDestroy(stream_);
    cudaSetDevice(before);
  }
  /// Takes over the stream and its objects.
  CudaStream(CudaStream&& other) noexcept = default;
  /// Exchanges the streams: `other` destroys this one's.
  CudaStream& operator=(CudaStream&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(stream_, other.stream_);
    std::swap(state_, other.state_);
    return *this;
  }
  /// Returns the view that kernels take. It must not outlive this.
  [[nodiscard]] Stream<CudaSpace> view() const noexcept { return {stream_, state_.get()}; }
  /// Returns the device's number.
  [[nodiscard]] int device() const noexcept { return device_; }

 private:
  int device_ = 0;
  cudaStream_t stream_ = nullptr;
  std::unique_ptr<detail::CudaStreamState> state_;
};

/// A mark in a stream that others can wait for.
class [[nodiscard]] CudaEvent {
 public:
  /// Makes an event on the current device, without a mark.   @throws CudaError
  CudaEvent() { check_cuda(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreateWithFlags"); }
  ~CudaEvent() {
    if (event_) cudaEventDestroy(event_);
  }
  /// Takes over the event.
  CudaEvent(CudaEvent&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  /// Exchanges the events.
  CudaEvent& operator=(CudaEvent&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  /// Marks the work queued on `stream` so far.
  void record(Stream<CudaSpace> stream) { check_cuda(cudaEventRecord(event_, stream.get()), "cudaEventRecord"); }
  /// Marks the work of a stream that is being recorded. Each run of the recording sets the mark again. Other streams
  /// can wait for the mark as soon as the recording is queued.
  void record_external(Stream<CudaSpace> stream) {
    check_cuda(cudaEventRecordWithFlags(event_, stream.get(), cudaEventRecordExternal), "cudaEventRecordWithFlags");
  }
  /// Makes work queued on `stream` from now on wait for the mark.
  void make_wait(Stream<CudaSpace> stream) const {
    check_cuda(cudaStreamWaitEvent(stream.get(), event_, 0), "cudaStreamWaitEvent");
  }
  /// Returns whether the device has reached the mark; true if none was recorded. Does not wait.
  /// @throws CudaError for any failure since the last check
  [[nodiscard]] bool reached() const {
    auto const status = cudaEventQuery(event_);
    if (status == cudaErrorNotReady) return static_cast<void>(cudaGetLastError()), false;  // counts as an error
    check_cuda(status, "cudaEventQuery");
    return true;
  }
  /// Waits until the device reaches the mark or fails; the next CUDA call reports the failure.
  void wait() const noexcept {
    if (cudaEventSynchronize(event_) != cudaSuccess) static_cast<void>(cudaGetLastError());
  }

 private:
  cudaEvent_t event_ = nullptr;
};

/// Page-locks host memory that exists already, while this lives: copies between it and devices then run while the host
/// continues, at full speed. No such copy may be in progress at the end.
class [[nodiscard]] PageLock {
 public:
  /// Locks nothing.
  PageLock() = default;
  /// Locks memory if CUDA can. Memory that stays pageable can be copied, too, but the host waits for each copy.
  PageLock(void* data, std::size_t bytes) noexcept {
    if (bytes == 0) return;
    if (cudaHostRegister(data, bytes, cudaHostRegisterDefault) == cudaSuccess)
      data_ = data;
    else
      static_cast<void>(cudaGetLastError());
  }
  ~PageLock() {
    if (data_) cudaHostUnregister(data_);
  }
  /// Takes over the lock.
  PageLock(PageLock&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  /// Exchanges the locks: `other` unlocks this one's memory.
  PageLock& operator=(PageLock&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  /// Returns whether the memory is locked.
  [[nodiscard]] bool locked() const noexcept { return data_ != nullptr; }

 private:
  void* data_ = nullptr;
};

namespace detail {

/// Branch to which a stream's work is forked.
struct CudaBranch {
  CudaStream stream;
  CudaEvent forked, joined;
  bool open = false;
};

}  // namespace detail

inline Stream<CudaSpace> Stream<CudaSpace>::fork() const {
  auto& branch = persistent<std::optional<detail::CudaBranch>>();
  if (!branch) branch.emplace();
  branch->open = true;
  branch->forked.record(*this);
  branch->forked.make_wait(branch->stream.view());
  return branch->stream.view();
}
inline void Stream<CudaSpace>::join() const {
  auto& branch = persistent<std::optional<detail::CudaBranch>>();
  if (!branch || !std::exchange(branch->open, false)) return;
  queued() += std::exchange(branch->stream.view().queued(), {});
  branch->joined.record(branch->stream.view());
  branch->joined.make_wait(*this);
}

/// Waits until the device reaches the mark. @throws CudaError for any failure since the last check
inline void wait_for(CudaEvent const& mark) {
  mark.wait();
  static_cast<void>(mark.reached());
}

}}}  // namespace lockstep::memory
