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

namespace lockstep::inline LOCKSTEP_ABI::memory {

/// Where batches arrive on the current device, one ahead: while one is read, the next is copied on a stream of its own
/// into a second place. Places are used in turn and keep their memory, also what a larger batch made too small: to give
/// it back is to wait for the device, and so for ranks that may never come. Once the largest batch has been seen,
/// nothing is allocated, and batches of one shape lie where the one before the last did. Copies are asynchronous from
/// page-locked memory only; other memory is read before `receive` returns. Used by one thread at a time.
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

  /// What f(copy) returns, its copies queued: a batch on the device, in the place that is not open. What f copies from
  /// may change once it has arrived. The copies wait for those who read that place before, and nobody else does. After
  /// an exception, what was copied so far goes nowhere, and is waited for as a batch is.
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
  /// Whether the batch received last has been copied, and what it was copied from is free. Does not wait.
  [[nodiscard]] bool arrived() const { return places_[static_cast<std::size_t>(last_)].arrived.reached(); }
  /// Waits for that, or for the device to fail, which comes out of whatever is asked of it next.
  void wait() const noexcept { places_[static_cast<std::size_t>(last_)].arrived.await(); }

  /// From here on `reader` reads the batch received last, and no longer the one opened before. The reader waits for the
  /// batch; the host does not. A reader outlives the inbox.
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

  /// The exception that is on its way says what is wrong.
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

}  // namespace lockstep::inline LOCKSTEP_ABI::memory
