// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep::inline LOCKSTEP_ABI::nn {

/// The replicas of a run within a pass in training, for layers that need more than the samples of their own: all
/// replicas do the same passes, so each comes to the same exchanges in the same order. An exchange waits for what is
/// queued before it, and is over when it returns.
class ReplicaGroup {
 public:
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Which of them this one is, from 0.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  /// all = the `bytes` of each replica, one behind the other, in the memory of the replica's space.
  /// @collective   @throws what its engine does where replicas part, or what ended another replica's pass
  virtual void all_gather(void const* mine, void* all, std::size_t bytes) = 0;
  /// The same of one number each, on the host.
  virtual void all_gather(Index mine, Index* all) = 0;
  /// out[i] = the sum over all replicas' in[rank * count + i], in the balanced tree; in the space's memory.
  /// @collective   @throws as all_gather   @determinism bitwise, on GPUs over NCCL for one number of ranks
  virtual void reduce_scatter(float const* in, float* out, Index count) = 0;
  virtual void reduce_scatter(double const* in, double* out, Index count) = 0;

  [[nodiscard]] double take_seconds() noexcept { return std::exchange(seconds_, 0.0); }

 protected:
  ~ReplicaGroup() = default;
  double seconds_ = 0;
};

/// What a context knows of its group: nothing, where a replica is alone.
class InReplicaGroup {
 public:
  /// Null where there is no other replica. Not for evaluation, in which replicas may see unequal numbers of batches.
  [[nodiscard]] ReplicaGroup* group() const noexcept { return group_; }
  /// Says what the replica is one of: null, or a group that outlives the context.
  void bind_group(ReplicaGroup* group) noexcept { group_ = group && group->size() > 1 ? group : nullptr; }
  /// For how long the group has been waited for, since the last call.
  [[nodiscard]] double take_exchange_seconds() noexcept { return group_ ? group_->take_seconds() : 0; }

 private:
  ReplicaGroup* group_ = nullptr;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::nn
