// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <lockstep/core/tree_sum.hpp>
#include <lockstep/kernel/embedding/touched_rows.hpp>
#include <lockstep/nn/autograd/loss.hpp>
#include <lockstep/parallel/detail/add_touched_rows.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// Sums gradients and losses of one process's replicas into the first one, and copies its values to the others.
/// @determinism bitwise: the balanced binary tree over replicas
template <class Replica, class Space = typename Replica::Space>
class ReplicaSum {
  static_assert(sizeof(Space) == 0, "Lockstep: include lockstep/cuda.cuh and compile with nvcc");
};

/// On the host each device's thread sums an equal part.
template <class Replica>
class ReplicaSum<Replica, HostSpace> {
 public:
  /// Both arguments must outlive this object.
  ReplicaSum(DeviceThreads& threads, std::span<Replica* const> replicas);

  /// Sums all gradients into the first replica's.
  /// @returns the loss of all
  nn::Loss<HostSpace> gather(Index size);

  /// Copies the first replica's values and loss scale to every replica. With `untouched_rows_equal`, skips rows that no
  /// replica has touched, since they are equal already. The cost of large tables is then proportional to the touched
  /// rows.
  void broadcast(bool untouched_rows_equal);

 private:
  /// Computes the union of the rows that any device has touched, for all tables.
  void compute_row_union();

  DeviceThreads& threads_;
  std::span<Replica* const> replicas_;
  std::vector<float*> gradients_;
  std::vector<std::uint64_t> row_union_;
};

template <class Replica>
[[gnu::cold]] ReplicaSum<Replica, HostSpace>::ReplicaSum(DeviceThreads& threads, std::span<Replica* const> replicas)
    : threads_(threads), replicas_(replicas) {
  for (auto const* replica : replicas) gradients_.push_back(replica->gradient_data());
}

template <class Replica>
nn::Loss<HostSpace> ReplicaSum<Replica, HostSpace>::gather(Index size) {
  auto const count = static_cast<int>(replicas_.size());
  compute_row_union();
  threads_.run([&](int device) {
    auto const at = static_cast<std::size_t>(device);
    replicas_[at]->zero_unused();
    auto const* row_union = row_union_.data();
    for (auto const& table : replicas_[at]->touched()) {
      add_touched_rows(table, row_union, gradients_[at]);
      row_union += table.bits().size();
    }
  });
  threads_.run([&](int device) {
    kernel::for_written(replicas_[0]->touched(), size * device / count, size * (device + 1) / count,
                        [&](Index from, Index to) {
                          tree_sum_into_first<float>({gradients_.data(), gradients_.size()}, from, to);
                        });
  });
  return {tree_sum(count, [&](int i) { return replicas_[static_cast<std::size_t>(i)]->loss().sum; }),
          tree_sum(count, [&](int i) { return replicas_[static_cast<std::size_t>(i)]->loss().weight; })};
}

template <class Replica>
void ReplicaSum<Replica, HostSpace>::broadcast(bool untouched_rows_equal) {
  threads_.run([&](int device) {
    auto &from = *replicas_[0], &to = *replicas_[static_cast<std::size_t>(device)];
    if (device == 0) return;
    auto const* const values = std::as_const(from).value_data();
    auto* const copy = to.value_data();
    kernel::for_written(untouched_rows_equal ? from.touched() : std::span<kernel::TouchedRows const>{}, 0, from.size(),
                        [&](Index begin, Index end) { std::copy(values + begin, values + end, copy + begin); });
    if constexpr (Replica::scales_loss) *to.loss_scale().data() = *from.loss_scale().data();
  });
}

template <class Replica>
void ReplicaSum<Replica, HostSpace>::compute_row_union() {
  row_union_.clear();
  for (std::size_t i = 0; i < replicas_[0]->touched().size(); ++i) {
    auto const at = row_union_.size();
    for (auto const* replica : replicas_) {
      auto const bits = replica->touched()[i].bits();
      row_union_.resize(at + bits.size());
      for (std::size_t word = 0; word < bits.size(); ++word) row_union_[at + word] |= bits[word];
    }
  }
}

#if defined(LOCKSTEP_COMPILED)
extern template class ReplicaSum<ReplicaBase<nn::Context<float, HostSpace>>, HostSpace>;
#endif

}}}  // namespace lockstep::parallel::detail
