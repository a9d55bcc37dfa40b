// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <utility>

#include <lockstep/core/index.hpp>
#include <lockstep/core/version.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace nn {

/// The replicas of a run during a training pass, for layers that need other replicas' samples. All replicas run equal
/// passes, so all reach the exchanges in one order. An exchange waits for the work queued before it and is complete
/// when it returns.
class ReplicaGroup {
 public:
  /// Returns the number of replicas.
  [[nodiscard]] virtual int size() const noexcept = 0;
  /// Returns this replica's index, from 0.
  [[nodiscard]] virtual int rank() const noexcept = 0;
  /// Concatenates the `bytes` of each replica in `all`, in the memory of the replica's space.
  /// @collective   @throws the engine's error if replicas diverge, or the error that ended another replica's pass
  virtual void all_gather(void const* mine, void* all, std::size_t bytes) = 0;
  /// Concatenates one number of each replica, on the host.
  virtual void all_gather(Index mine, Index* all) = 0;
  /// Computes out[i] = the sum over all replicas' in[rank * count + i], in the balanced tree, in the space's memory.
  /// @collective   @throws as all_gather   @determinism bitwise; on GPUs over NCCL for a fixed number of ranks
  virtual void reduce_scatter(float const* in, float* out, Index count) = 0;
  /// As above, for doubles.
  virtual void reduce_scatter(double const* in, double* out, Index count) = 0;

  /// Returns the seconds of exchanges since the last call.
  [[nodiscard]] double take_seconds() noexcept { return std::exchange(seconds_, 0.0); }

 protected:
  ~ReplicaGroup() = default;
  double seconds_ = 0;  ///< of exchanges since the last take_seconds()
};

/// A context's replica group; null if the replica is alone.
class InReplicaGroup {
 public:
  /// Returns null if there is no other replica. Not for evaluation, in which replicas may have unequal numbers of
  /// batches.
  [[nodiscard]] ReplicaGroup* group() const noexcept { return group_; }
  /// Binds the replica's group: null, or a group that outlives the context.
  void bind_group(ReplicaGroup* group) noexcept { group_ = group && group->size() > 1 ? group : nullptr; }
  /// Returns the seconds spent in exchanges of the group since the last call.
  [[nodiscard]] double take_exchange_seconds() noexcept { return group_ ? group_->take_seconds() : 0; }

 private:
  ReplicaGroup* group_ = nullptr;
};

}}}  // namespace lockstep::nn
