// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <algorithm>
#include <cstddef>
#include <iterator>
#include <span>
#include <vector>

#include <lockstep/core/tree_sum.hpp>
#include <lockstep/memory/space.hpp>
#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/parallel/buffer_policy.hpp>
#include <lockstep/parallel/check/check_replicas.hpp>
#include <lockstep/parallel/detail/replica_groups.hpp>
#include <lockstep/parallel/device_threads.hpp>
#include <lockstep/parallel/policy.hpp>
#include <lockstep/parallel/replica/optimizer_state.hpp>
#include <lockstep/parallel/replica/replica.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace parallel::detail {

/// The replicas of a process, each with its device's thread and its group, for what a session does between steps. The
/// library instantiates it for float on the host.
template <class Replica>
class DeviceReplicas {
 public:
  /// `threads` must outlive this object, and so must the replicas, which it does not own.
  explicit DeviceReplicas(DeviceThreads& threads);
  ~DeviceReplicas();
  DeviceReplicas(DeviceReplicas const&) = delete;
  DeviceReplicas& operator=(DeviceReplicas const&) = delete;

  /// Adds the next device's replica, and connects it with the others.
  void add(Replica& replica);
  /// Returns the exchange point of the replicas' layers.
  [[nodiscard]] ThreadExchange& thread_exchange() noexcept { return thread_exchange_; }
  [[nodiscard]] std::span<Replica* const> all() const noexcept { return {all_.data(), all_.size()}; }

  /// Compares the bits of all parameters.   @throws CollectiveMismatch if they differ
  void check(nn::ParameterLayout const& layout, Index step);
  /// Makes the buffers of all replicas equal, according to the policy.
  void synchronize_buffers(BufferPolicy policy);
  /// Restores values and buffers of all replicas, and the moments of the first device.
  void restore(SessionState& state, OptimizerMoments<typename Replica::Space>& moments);
  /// Returns the memory of the devices, and the unused parameters.
  [[nodiscard]] SessionReport report() const;

 private:
  using Space = typename Replica::Space;

  DeviceThreads& threads_;
  ThreadExchange thread_exchange_;
  std::vector<Replica*> all_;
  std::vector<ReplicaGroup<ThreadTransport, typename Replica::Device, Space::host_accessible>> groups_;
};

template <class Replica>
[[gnu::cold]] DeviceReplicas<Replica>::DeviceReplicas(DeviceThreads& threads)
    : threads_(threads), thread_exchange_(threads.devices()) {
  groups_.reserve(static_cast<std::size_t>(threads.devices()));  // replicas refer to them
}

template <class Replica>
[[gnu::cold]] DeviceReplicas<Replica>::~DeviceReplicas() = default;

template <class Replica>
[[gnu::cold]] void DeviceReplicas<Replica>::add(Replica& replica) {
  ThreadTransport const transport(thread_exchange_, static_cast<int>(all_.size()));
  all_.push_back(&replica);
  replica.set_group(groups_.emplace_back(transport, replica.device()));
}

template <class Replica>
[[gnu::cold]] void DeviceReplicas<Replica>::check(nn::ParameterLayout const& layout, Index step) {
  auto const each_has = layout.entries().size();
  std::vector<Checksum> sums(all_.size() * each_has);
  threads_.run([&](int device) {
    auto& replica = *all_[static_cast<std::size_t>(device)];
    replica.device().enter();
    auto const mine = detail::checksums(layout, ReplicaArenas(1, replica.values().data()));
    std::copy(mine.begin(), mine.end(), sums.data() + static_cast<std::size_t>(device) * each_has);
  });
  detail::expect_equal_checksums(layout, {sums.data(), sums.size()}, all_.size(), "device",
                                 "a device's parameters were changed separately", step);
}

template <class Replica>
[[gnu::cold]] void DeviceReplicas<Replica>::synchronize_buffers(BufferPolicy policy) {
  auto buffers = all_[0]->buffers();
  if (buffers.empty() || policy == BufferPolicy::own) return;
  if (policy == BufferPolicy::mean) {
    std::vector<float*> means;
    for (auto* const replica : all_) {
      replica->device().enter();
      means.push_back(replica->mean_buffers().data());
    }
    all_[0]->device().enter();
    tree_sum_into_first<float>({means.data(), means.size()}, 0, std::ssize(buffers));
    buffers = {means[0], buffers.size()};
    for (float& sum : buffers) sum /= static_cast<float>(all_.size());
  }
  threads_.run([&](int device) {
    auto& replica = *all_[static_cast<std::size_t>(device)];
    replica.device().enter();
    replica.set_buffers(buffers);
  });
}

template <class Replica>
[[gnu::cold]] void DeviceReplicas<Replica>::restore(SessionState& state,
                                                    OptimizerMoments<typename Replica::Space>& moments) {
  threads_.run([&](int device) {
    auto& replica = *all_[static_cast<std::size_t>(device)];
    replica.device().enter();
    replica.set_values(state.values());
    replica.set_buffers(state.buffers());
    if (device == 0) moments.set_moments(state, replica.device());
  });
}

template <class Replica>
[[gnu::cold]] SessionReport DeviceReplicas<Replica>::report() const {
  SessionReport report;
  std::vector<double> used(all_[0]->used().size());
  for (auto const* replica : all_) {
    report.peak_bytes_per_device.push_back(replica->bytes());
    for (std::size_t i = 0; i < used.size(); ++i) used[i] += replica->used()[i];
  }
  report.unused_parameters = all_[0]->unused(used);
  return report;
}

#if defined(LOCKSTEP_COMPILED)
extern template class DeviceReplicas<ReplicaBase<nn::Context<float, HostSpace>>>;
#endif

}}}  // namespace lockstep::parallel::detail
