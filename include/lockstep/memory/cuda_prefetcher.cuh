// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <optional>
#include <type_traits>
#include <utility>

#include <lockstep/core/tensor_view.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/memory/scratch.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace memory {

/// Prefetches batches to the current device, double-buffered: while one batch is read, the next is copied on its own
/// stream into a second slab. Slabs are used in turn and keep their memory, also chunks that a larger batch outgrew.
/// Freeing would wait for the device, and thus possibly for ranks that never arrive. After the largest batch nothing is
/// allocated, and batches of one shape alternate between two addresses. Copies are asynchronous only from page-locked
/// memory; other memory is read before `prefetch` returns. Used by one thread at a time.
class [[nodiscard]] CudaPrefetcher {
 public:
  static constexpr int slots = 2;  ///< batches in device memory

  /// Queues the copy of one tensor at a time. Integers stay integers; a null view stays null.
  class Copy {
   public:
    using Space = CudaSpace;  ///< of the copies
    /// Queues the copy of a tensor and returns the tensor in device memory.
    template <class Value, int Rank>
    [[nodiscard]] TensorView<Value const, Rank, CudaSpace> operator()(TensorView<Value, Rank, HostSpace> from) const {
      if (!from.data) return {nullptr, from.extent};
      auto* const to = memory_->template take_elements<std::remove_const_t<Value>>(from.size());
      if (from.size() > 0)
        check_cuda(cudaMemcpyAsync(to, from.data, static_cast<std::size_t>(from.size()) * sizeof(Value),
                                   cudaMemcpyHostToDevice, stream_.get()),
                   "cudaMemcpyAsync");
      return {to, from.extent};
    }

   private:
    friend CudaPrefetcher;
    Copy(Scratch<CudaResource>& memory, Stream<CudaSpace> stream) noexcept : memory_(&memory), stream_(stream) {}

    Scratch<CudaResource>* memory_;
    Stream<CudaSpace> stream_;
  };

  CudaPrefetcher() = default;
  CudaPrefetcher(CudaPrefetcher const&) = delete;
  CudaPrefetcher& operator=(CudaPrefetcher const&) = delete;
  ~CudaPrefetcher() {
    if (reader_) cudaStreamSynchronize(reader_->get());
  }

  /// Returns the result of f(copy) with its copies queued: a batch on the device, in the slab that is not active. The
  /// source may change once the batch has arrived. The copies wait only for earlier readers of that slab. After an
  /// exception, the copies so far are discarded, and the next user of the slab waits for them as for a batch.
  template <class Function>
  [[nodiscard]] auto prefetch(Function&& f) {
    received_ = 1 - active_;
    auto& slot = slots_[static_cast<std::size_t>(received_)];
    slot.memory.rewind({});
    slot.read.make_wait(stream_.view());
    try {
      auto batch = std::forward<Function>(f)(Copy(slot.memory, stream_.view()));
      slot.arrived.record(stream_.view());
      return batch;
    } catch (...) {
      record_partial_copy(slot);
      throw;
    }
  }
  /// Returns whether the batch received last has been copied, so that its source is free. Does not wait.
  [[nodiscard]] bool arrived() const { return slots_[static_cast<std::size_t>(received_)].arrived.reached(); }
  /// Waits until it has arrived, or until the device fails; the next CUDA call reports the failure.
  void wait() const noexcept { slots_[static_cast<std::size_t>(received_)].arrived.wait(); }

  /// Lets `reader` read the batch received last instead of the active one. The reader waits for the batch; the
  /// host does not. The reader must outlive the prefetcher.
  void activate(Stream<CudaSpace> reader) {
    if (reader_) slots_[static_cast<std::size_t>(active_)].read.record(*reader_);
    reader_ = reader;
    active_ = received_;
    slots_[static_cast<std::size_t>(active_)].arrived.make_wait(reader);
  }

 private:
  struct Slot {
    Scratch<CudaResource> memory;
    CudaEvent arrived, read;
  };

  /// The exception in flight already names the problem.
  void record_partial_copy(Slot& slot) noexcept {
    try {
      slot.arrived.record(stream_.view());
    } catch (CudaError const&) {
      cudaStreamSynchronize(stream_.view().get());
    }
  }

  std::array<Slot, slots> slots_;
  CudaStream stream_;
  std::optional<Stream<CudaSpace>> reader_;
  int received_ = 0, active_ = 0;
};

}}}  // namespace lockstep::memory
