// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/rank_store.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// Joins ranks on several hosts through the store of the first one: every operation is a message of each rank to it and
/// one back. Made for the little that ranks with GPUs tell each other beside NCCL, not for gradients. All communicators
/// of a rank belong to one thread. `allocate` gives this rank's own memory.
/// @determinism bitwise, equal to all engines of Lockstep
class StoreCommunicator {
 public:
  /// @throws ConfigError when the world is of another engine
  explicit StoreCommunicator(launch::World const& world) : self_(std::make_unique<detail::RankStore>(checked(world))) {}

  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  [[nodiscard]] int size() const noexcept { return self_->size(); }
  [[nodiscard]] char const* name() const noexcept { return launch::name(launch::Engine::store); }
  [[nodiscard]] memory::Block allocate(std::size_t bytes) const { return memory::HostResource{}.allocate(bytes); }
  /// @throws ConfigError when no engine could do it
  void start(Piece& piece) { self_->start(piece); }
  void progress() { self_->progress(); }
  /// @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void wait(Piece const& piece) { self_->wait(piece); }
  /// @throws RankLost, RankStalled, CollectiveMismatch, CommunicationError
  void finish() { self_->finish(); }
  /// Collective: the ranks that gave this rank's color, ordered by key and then by rank.
  [[nodiscard]] StoreCommunicator split(int color, int key) { return StoreCommunicator(self_->split(color, key)); }

 private:
  explicit StoreCommunicator(std::unique_ptr<detail::RankStore> self) : self_(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (!world.store)
      throw ConfigError(std::string("StoreCommunicator: this run's ranks are joined by the engine '") +
                        launch::name(world.engine) + "'; use comm::connect");
    return world;
  }

  std::unique_ptr<detail::RankStore> self_;
};
static_assert(Communicator<StoreCommunicator>);

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
