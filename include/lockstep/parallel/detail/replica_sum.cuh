// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include <lockstep/kernel/add.cuh>
#include <lockstep/memory/cuda.cuh>
#include <lockstep/parallel/detail/replica_sum.hpp>

namespace lockstep::inline LOCKSTEP_ABI::parallel::detail {

/// Replicas meet in pairs, then pairs of pairs: the tree that the host sums in. Each sum is made on the left one's GPU,
/// all of a round at the same time; a gradient that lies on another GPU is copied over first.
template <class Replica>
class ReplicaSum<Replica, CudaSpace> {
 public:
  /// Both outlive this object.
  ReplicaSum(DeviceThreads&, std::span<std::unique_ptr<Replica> const> replicas) : replicas_(replicas) {
    for (auto const& replica : replicas) {
      replica->device().enter();
      done_.emplace_back();
      copied_.emplace_back();
    }
    first().device().enter();
  }

  /// Queued on all streams; the first replica's has the sums.
  nn::Loss<CudaSpace> gather(Index size) {
    for (auto const& replica : replicas_) replica->zero_unused();
    for (std::size_t stride = 1; stride < replicas_.size(); stride *= 2)
      for (std::size_t left = 0; left + stride < replicas_.size(); left += 2 * stride) add(left, left + stride, size);
    first().device().enter();
    return first().loss();
  }

  /// Every replica takes the values of the first, on its own stream.
  void spread() {
    auto& from = first();
    record(0);
    for (std::size_t i = 1; i < replicas_.size(); ++i) {
      auto& to = *replicas_[i];
      to.device().enter();
      done_[0].block(to.stream());
      copy(to.stream(), from.value_data(), to.value_data(), from.size());
    }
    from.device().enter();
  }

 private:
  [[nodiscard]] Replica& first() const noexcept { return *replicas_[0]; }
  /// What is queued for a replica so far, for others to wait for.
  void record(std::size_t i) {
    replicas_[i]->device().enter();
    done_[i].record(replicas_[i]->stream());
  }

  void add(std::size_t left, std::size_t right, Index size) {
    auto& to = *replicas_[left];
    auto& from = *replicas_[right];
    record(right);
    to.device().enter();
    auto const stream = to.stream();
    done_[right].block(stream);
    auto const* gradients = near(left, from, from.gradient_data(), size);
    kernel::Add<CudaSpace>::backward<float>(stream, {gradients, {size}}, {to.gradient_data(), {size}}, Write::add);
    to.device().add_loss({near(left, from, from.loss().totals, 2), nullptr, nullptr});
  }
  /// Numbers of another replica where this one's GPU can read them.
  template <class T>
  [[nodiscard]] T* near(std::size_t left, Replica& from, T* numbers, Index count) {
    auto& to = *replicas_[left];
    if (to.device().gpu() == from.device().gpu()) return numbers;
    auto& block = copied_[left][sizeof(T) == sizeof(double)];
    auto const bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (block.bytes() < bytes) memory::CudaResource{}.allocate(bytes).swap(block);
    copy(to.stream(), numbers, reinterpret_cast<T*>(block.data()), count);
    return reinterpret_cast<T*>(block.data());
  }
  /// Between any two GPUs.
  template <class T>
  static void copy(memory::Stream<CudaSpace> stream, T const* from, T* to, Index count) {
    auto const bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > 0)
      memory::check_cuda(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream.get()), "cudaMemcpyAsync");
  }

  struct Copies {
    memory::Block gradients, loss;
    memory::Block& operator[](bool is_loss) noexcept { return is_loss ? loss : gradients; }
  };

  std::span<std::unique_ptr<Replica> const> replicas_;
  std::vector<memory::CudaEvent> done_;
  std::vector<Copies> copied_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::parallel::detail
