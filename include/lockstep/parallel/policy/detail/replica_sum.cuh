// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/reduction/sum_buffers.cuh>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/policy/detail/replica_sum.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums in the host's tree. One kernel sums replicas that share a GPU and form a subtree. Subtrees on several GPUs are
/// summed on the left one's GPU, all in parallel, after a copy of the right ones.
template <class Replica>
class ReplicaSum<Replica, CudaSpace> {
 public:
  /// Both arguments must outlive this object.
  ReplicaSum(DeviceThreads&, std::span<Replica* const> replicas) : replicas_(replicas) {
    for (auto* const replica : replicas) {
      replica->device().enter();
      done_.emplace_back();
      copied_.emplace_back();
    }
    for (auto* const reader : replicas)
      for (auto* const read : replicas) enable_peer_access(*reader, *read);
    first().device().enter();
  }
  ReplicaSum(ReplicaSum const&) = delete;
  ReplicaSum& operator=(ReplicaSum const&) = delete;
  /// Waits for all replicas: they may still copy memory that is freed next.
  ~ReplicaSum() {
    for (auto* const replica : replicas_) cudaStreamSynchronize(replica->stream().get());
  }

  /// Queues the sums on all streams. The first replica has the result.
  nn::Loss<CudaSpace> gather(Index size) {
    for (auto* const replica : replicas_) {
      replica->zero_unused();
      replica->device().begin_sum();
    }
    sum(0, replicas_.size(), size);
    first().device().enter();
    return first().device().summed();
  }

  /// Copies the first replica's values and loss scale to every replica, on the replica's own stream. Tables have dense
  /// gradients here.
  void broadcast(bool) {
    auto& from = first();
    record(0);
    for (std::size_t i = 1; i < replicas_.size(); ++i) {
      auto& to = *replicas_[i];
      to.device().enter();
      done_[0].make_wait(to.stream());
      copy(to.stream(), std::as_const(from).value_data(), to.value_data(), from.size());
      if constexpr (Replica::scales_loss) copy(to.stream(), from.loss_scale().data(), to.loss_scale().data(), 1);
    }
    from.device().enter();
  }

 private:
  /// Enables direct copies between two GPUs if possible; otherwise they go through the host.
  static void enable_peer_access(Replica& reader, Replica& read) {
    if (reader.device().gpu() == read.device().gpu()) return;
    int can = 0;
    memory::check_cuda(cudaDeviceCanAccessPeer(&can, reader.device().gpu(), read.device().gpu()),
                       "cudaDeviceCanAccessPeer");
    if (can == 0) return;
    reader.device().enter();
    auto const status = cudaDeviceEnablePeerAccess(read.device().gpu(), 0);
    if (status == cudaErrorPeerAccessAlreadyEnabled)
      cudaGetLastError();  // clears the error, which the runtime would report again
    else
      memory::check_cuda(status, "cudaDeviceEnablePeerAccess");
  }
  [[nodiscard]] Replica& first() const noexcept { return *replicas_[0]; }
  /// Marks the work that is queued for a replica so far, for other streams to wait for.
  void record(std::size_t i) {
    replicas_[i]->device().enter();
    done_[i].record(replicas_[i]->stream());
  }

  /// Sums replicas [begin, begin + count) into the first of them.
  void sum(std::size_t begin, std::size_t count, Index size) {
    if (count < 2) return;
    if (share_a_gpu(begin, count)) return add(begin, 1, count, size);
    auto const left = static_cast<std::size_t>(tree_split(static_cast<int>(count)));
    sum(begin, left, size);
    sum(begin + left, count - left, size);
    add(begin, left, 2, size);
  }
  [[nodiscard]] bool share_a_gpu(std::size_t begin, std::size_t count) const noexcept {
    for (std::size_t i = 1; i < count; ++i)
      if (replicas_[begin + i]->device().gpu() != replicas_[begin]->device().gpu()) return false;
    return true;
  }
  /// Sums `count` replicas begin, begin + stride, … with one kernel for gradients and one for losses.
  void add(std::size_t begin, std::size_t stride, std::size_t count, Index size) {
    auto& to = *replicas_[begin];
    gradients_.assign(1, to.gradient_data());
    losses_.assign(1, to.device().summed().totals);
    for (std::size_t k = 1; k < count; ++k) {
      auto& from = *replicas_[begin + k * stride];
      record(begin + k * stride);
      to.device().enter();
      done_[begin + k * stride].make_wait(to.stream());
      gradients_.push_back(readable_copy(begin, from, from.gradient_data(), size));
      losses_.push_back(readable_copy(begin, from, from.device().summed().totals, 2));
    }
    kernel::sum_buffers<float>(to.stream(), gradients_, size);
    kernel::sum_buffers<double>(to.stream(), losses_, 2);
  }
  /// Returns another replica's numbers in memory that this replica's GPU can read.
  template <class Value>
  [[nodiscard]] Value* readable_copy(std::size_t left, Replica& from, Value* numbers, Index count) {
    auto& to = *replicas_[left];
    if (to.device().gpu() == from.device().gpu()) return numbers;
    auto& block = copied_[left][sizeof(Value) == sizeof(double)];
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Value);
    if (block.bytes() < bytes) memory::CudaResource{}.allocate(bytes).swap(block);
    copy(to.stream(), numbers, reinterpret_cast<Value*>(block.data()), count);
    return reinterpret_cast<Value*>(block.data());
  }
  /// Copies between any two GPUs.
  template <class Value>
  static void copy(memory::Stream<CudaSpace> stream, Value const* from, Value* to, Index count) {
    auto const bytes = static_cast<std::size_t>(count) * sizeof(Value);
    if (bytes > 0)
      memory::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
  }

  struct Copies {
    memory::Block gradients, loss;
    memory::Block& operator[](bool is_loss) noexcept { return is_loss ? loss : gradients; }
  };

  std::span<Replica* const> replicas_;
  std::vector<memory::CudaEvent> done_;
  std::vector<Copies> copied_;
  std::vector<float*> gradients_;
  std::vector<double*> losses_;
};

}}}  // namespace lockstep::parallel::detail
