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

/// Receives batches on the current device, one ahead: while one batch is read, the next is copied on its own stream
/// into a second slab. Slabs are used in turn and keep their memory, also chunks that a larger batch outgrew. Freeing
/// would wait for the device, and thus possibly for ranks that never arrive. After the largest batch nothing is
/// allocated, and batches of one shape alternate between two addresses. Copies are asynchronous only from page-locked
/// memory; other memory is read before `receive` returns. Used by one thread at a time.
class [[nodiscard]] CudaInbox {
 public:
  static constexpr int places = 2;

  /// Queues the copy of one tensor at a time. Integers stay integers; a null view stays null.
  class Copy {
   public:
    using Space = CudaSpace;
    template <class T, int Rank>
    [[nodiscard]] TensorView<T const, Rank, CudaSpace> operator()(TensorView<T, Rank, HostSpace> from) const {
      if (!from.data) return {nullptr, from.extent};
      auto* const to = memory_->template take_elements<std::remove_const_t<T>>(from.size());
      if (from.size() > 0)
        check_cuda(cudaMemcpyAsync(to, from.data, static_cast<std::size_t>(from.size()) * sizeof(T),
                                   cudaMemcpyHostToDevice, stream_.get()),
                   "cudaMemcpyAsync");
      return {to, from.extent};
    }

   private:
    friend CudaInbox;
    Copy(Scratch<CudaResource>& memory, Stream<CudaSpace> stream) noexcept : memory_(&memory), stream_(stream) {}

    Scratch<CudaResource>* memory_;
    Stream<CudaSpace> stream_;
  };

  CudaInbox() = default;
  CudaInbox(CudaInbox const&) = delete;
  CudaInbox& operator=(CudaInbox const&) = delete;
  ~CudaInbox() {
    if (reader_) cudaStreamSynchronize(reader_->get());
  }

  /// Returns the result of f(copy) with its copies queued: a batch on the device, in the slab that is not open. The
  /// source may change once the batch has arrived. The copies wait only for earlier readers of that slab. After an
  /// exception, the copies so far are discarded, and the next user of the slab waits for them as for a batch.
  template <class F>
  [[nodiscard]] auto receive(F&& f) {
    last_ = 1 - opened_;
    auto& place = places_[static_cast<std::size_t>(last_)];
    place.memory.rewind({});
    place.read.block(stream_.view());
    try {
      auto batch = std::forward<F>(f)(Copy(place.memory, stream_.view()));
      place.arrived.record(stream_.view());
      return batch;
    } catch (...) {
      mark_the_rest(place);
      throw;
    }
  }
  /// Returns whether the batch received last has been copied, so that its source is free. Does not wait.
  [[nodiscard]] bool arrived() const { return places_[static_cast<std::size_t>(last_)].arrived.reached(); }
  /// Waits until it has arrived, or until the device fails; the next CUDA call reports the failure.
  void wait() const noexcept { places_[static_cast<std::size_t>(last_)].arrived.await(); }

  /// Lets `reader` read the batch received last instead of the one opened before. The reader waits for the batch; the
  /// host does not. The reader must outlive the inbox.
  void open(Stream<CudaSpace> reader) {
    if (reader_) places_[static_cast<std::size_t>(opened_)].read.record(*reader_);
    reader_ = reader;
    opened_ = last_;
    places_[static_cast<std::size_t>(opened_)].arrived.block(reader);
  }

 private:
  struct Place {
    Scratch<CudaResource> memory;
    CudaEvent arrived, read;
  };

  /// The exception in flight already names the problem.
  void mark_the_rest(Place& place) noexcept {
    try {
      place.arrived.record(stream_.view());
    } catch (CudaError const&) {
      cudaStreamSynchronize(stream_.view().get());
    }
  }

  std::array<Place, places> places_;
  CudaStream stream_;
  std::optional<Stream<CudaSpace>> reader_;
  int last_ = 0, opened_ = 0;
};

}}}  // namespace lockstep::memory
