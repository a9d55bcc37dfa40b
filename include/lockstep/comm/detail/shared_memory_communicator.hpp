// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/shared_memory_rank.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm::detail {

/// Joins ranks by memory that all of them reach: who starts them has made it, and `engine` is what he calls it.
template <launch::Engine engine>
class SharedMemoryCommunicator {
 public:
  /// @throws ConfigError when the world is of another engine, or this rank is connected already
  explicit SharedMemoryCommunicator(launch::World const& world)
      : self_(std::make_shared<SharedMemoryRank>(checked(world))) {}

  [[nodiscard]] char const* name() const noexcept { return launch::name(engine); }
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  [[nodiscard]] int size() const noexcept { return self_->size(); }

  /// Collective. @throws std::bad_alloc when the rank's share of the machine's memory is used up
  [[nodiscard]] memory::Block allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    auto owner = std::make_unique<std::shared_ptr<SharedMemoryRank>>(self_);  // the block keeps the memory there
    auto* const data = self_->take(bytes);
    return {data, bytes, &release, owner.release()};
  }

  /// @throws ConfigError when no engine could do it
  void start(Piece& piece) { self_->start(piece); }
  void progress() { self_->progress(); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void wait(Piece const& piece) { self_->wait(piece); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void finish() { self_->finish(); }

  /// Collective: the ranks that gave this rank's color, ordered by key and then by rank.
  [[nodiscard]] SharedMemoryCommunicator split(int color, int key) {
    return SharedMemoryCommunicator(self_->split(color, key));
  }

 private:
  using Self = std::shared_ptr<SharedMemoryRank>;

  explicit SharedMemoryCommunicator(Self self) : self_(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (world.engine != engine || !world.segment)
      throw ConfigError(std::string(engine == launch::Engine::thread ? "Thread" : "Process") +
                        "Communicator: this run's ranks are joined by the engine '" + launch::name(world.engine) +
                        "'; use comm::connect");
    return world;
  }
  static void release(void* owner, std::byte* data, std::size_t bytes) noexcept {
    std::unique_ptr<Self> const self(static_cast<Self*>(owner));
    (*self)->give_back(data, bytes);
  }

  Self self_;
};

}  // namespace lockstep::inline LOCKSTEP_ABI::comm::detail
