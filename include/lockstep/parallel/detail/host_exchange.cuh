// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <unistd.h>

#include <cstddef>
#include <span>
#include <vector>

#include <lockstep/comm/operation.hpp>
#include <lockstep/core/wait.hpp>
#include <lockstep/memory/block.hpp>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/detail/arena_ranges.hpp>
#include <lockstep/parallel/detail/host_exchange.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Copies run on two streams, one for each direction, while the replica's stream works. The calling thread runs the
/// collectives. It waits for a copy only if it can do nothing else.
template <>
class HostExchange<CudaSpace> {
 public:
  /// @param host the communicator's memory, in the layout of the arenas; it must outlive this object
  explicit HostExchange(std::span<float> host) : host_(host.data()), lock_(host.data(), host.size_bytes()) {}

  [[nodiscard]] float* host() const noexcept { return host_; }

  /// Elements in device memory, and the offset of their copy on the host.
  struct Slice {
    float* data;
    Index count, on_host;
  };
  /// Returns the place of an arena's part, which has equal offsets in both memories.
  [[nodiscard]] static Slice slice(float* arena, ArenaPart const& part) noexcept {
    return {arena + part.begin, part.end - part.begin, part.begin};
  }

  /// Copies elements for operation `number` to their place on the host, once the device reaches `after`. Call it with
  /// the numbers 0, 1, 2, ... in this order.
  void copy_to_host(std::size_t number, memory::CudaEvent const& after, Slice const& from) {
    if (number == on_host_.size()) on_host_.emplace_back();
    after.make_wait(to_host_.view());
    copy(host_ + from.on_host, from.data, from.count, cudaMemcpyDeviceToHost, to_host_);
    on_host_[number].record(to_host_.view());
  }
  /// Copies a loss to the host, together with the next part. Read it by `loss` once that part's operation starts.
  void copy_loss_to_host(memory::CudaEvent const& after, double const* totals) {
    after.make_wait(to_host_.view());
    memory::check_cuda(
        cudaMemcpyAsync(loss_.data(), totals, 2 * sizeof(double), cudaMemcpyDeviceToHost, to_host_.view().get()),
        "cudaMemcpyAsync");
  }
  [[nodiscard]] nn::Loss<HostSpace> loss() const noexcept {
    auto const* const totals = reinterpret_cast<double const*>(loss_.data());
    return {totals[0], totals[1]};
  }

  /// Runs `count` operations, whose parts were copied to the host. Each starts once its part is on the host, and its
  /// result is copied to the arena once it is complete. Returns when all copies are queued.
  /// @param operation operation(i) returns operation i, and is called when it starts   @param result result(i) is the
  /// place to copy back
  /// @param poll called repeatedly   @throws as the communicator
  template <class Communicator, class OperationOf, class ResultOf, class Poll>
  void run(Communicator& communicator, std::size_t count, OperationOf const& operation, ResultOf const& result,
           Poll const& poll) {
    started_.clear();
    std::size_t returned = 0;
    for (Backoff backoff; returned < count; poll()) {
      auto const before = started_.size() + returned;
      for (; started_.size() < count && on_host_[started_.size()].reached(); communicator.start(*started_.back()))
        started_.push_back(&operation(started_.size()));
      communicator.progress();
      // Only an engine's `wait` finds lost ranks. Until all operations have started, the device is waited for, too.
      if (started_.size() == count && !started_[returned]->complete()) communicator.wait(*started_[returned]);
      for (; returned < started_.size() && started_[returned]->complete(); ++returned) {
        Slice const to = result(returned);
        copy(to.data, host_ + to.on_host, to.count, cudaMemcpyHostToDevice, to_device_);
      }
      if (before != started_.size() + returned)
        backoff = Backoff();
      else if (!backoff.pause())
        ::usleep(20);
    }
  }
  /// Makes work that is queued on the stream from now on wait for the results.
  void end(memory::Stream<CudaSpace> stream) {
    all_on_device_.record(to_device_.view());
    all_on_device_.make_wait(stream);
  }

 private:
  static void copy(float* to, float const* from, Index count, cudaMemcpyKind kind, memory::CudaStream const& stream) {
    auto const bytes = static_cast<std::size_t>(count) * sizeof(float);
    if (bytes > 0) memory::check_cuda(cudaMemcpyAsync(to, from, bytes, kind, stream.view().get()), "cudaMemcpyAsync");
  }

  float* host_;
  memory::PageLock lock_;
  memory::Block loss_ = memory::PinnedResource{}.allocate(2 * sizeof(double));
  std::vector<memory::CudaEvent> on_host_;  // of each operation: its part is on the host
  memory::CudaEvent all_on_device_;
  std::vector<comm::CollectiveOperation*> started_;
  memory::CudaStream to_host_, to_device_;  // destroyed first: they wait for copies
};

}}}  // namespace lockstep::parallel::detail
