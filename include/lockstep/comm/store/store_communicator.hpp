// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/store/detail/store_rank.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm {

/// Connects ranks on several hosts through the store of rank 0's host. In each operation every rank sends one message
/// to the store and receives one. For small payloads that ranks with GPUs exchange in addition to NCCL, not for
/// gradients. One thread at a time may use a rank's communicators. `allocate` returns memory of this rank only.
/// @determinism bitwise, equal to all other engines except NCCL
class StoreCommunicator {
 public:
  /// @throws ConfigError if the world uses another engine
  explicit StoreCommunicator(launch::World const& world) : self_(std::make_unique<detail::StoreRank>(checked(world))) {}

  /// Returns this rank, in [0, size()).
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  /// Returns the number of ranks.
  [[nodiscard]] int size() const noexcept { return self_->size(); }
  /// Returns "store".
  [[nodiscard]] char const* name() const noexcept { return launch::name(launch::Engine::store); }
  /// Returns zeroed host memory.
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const { return memory::HostResource{}.allocate(bytes); }
  /// Starts an operation, which must live until it is complete. Never blocks.
  /// @throws ConfigError if no engine can run it
  void start(CollectiveOperation& operation) { self_->start(operation); }
  /// Sends and receives what is possible without waiting.
  void progress() { self_->progress(); }
  /// Waits until the operation is complete.   @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void wait(CollectiveOperation const& operation) { self_->wait(operation); }
  /// Waits until all operations are complete.   @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void finish() { self_->finish(); }
  /// Returns the communicator of the ranks with this rank's color, ordered by key and then by rank.   @collective
  [[nodiscard]] StoreCommunicator split(int color, int key) { return StoreCommunicator(self_->split(color, key)); }

 private:
  explicit StoreCommunicator(std::unique_ptr<detail::StoreRank> self) : self_(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (!world.store)
      throw ConfigError(std::string("StoreCommunicator: this run's ranks are connected by the engine '") +
                        launch::name(world.engine) + "'; use comm::connect");
    return world;
  }

  std::unique_ptr<detail::StoreRank> self_;
};
static_assert(Communicator<StoreCommunicator>);

}}}  // namespace lockstep::comm
