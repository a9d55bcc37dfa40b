// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/shared_memory/detail/shared_memory_rank.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace comm::detail {

/// Connects ranks through memory that all of them reach. The launcher creates the memory; `engine` is the launcher's
/// name for it.
template <launch::Engine engine>
class SharedMemoryCommunicator {
 public:
  /// @throws ConfigError if the world uses another engine, or this rank is already connected
  explicit SharedMemoryCommunicator(launch::World const& world)
      : self_(std::make_shared<SharedMemoryRank>(checked(world))) {}

  [[nodiscard]] char const* name() const noexcept { return launch::name(engine); }
  [[nodiscard]] int rank() const noexcept { return self_->rank(); }
  [[nodiscard]] int size() const noexcept { return self_->size(); }

  /// Allocates zeroed memory.   @collective   @throws std::bad_alloc if the rank's share of the segment is used up
  [[nodiscard]] memory::Block allocate(std::size_t bytes) {
    if (bytes == 0) return {};
    auto owner = std::make_unique<std::shared_ptr<SharedMemoryRank>>(self_);  // keeps the memory mapped
    auto* const data = self_->allocate(bytes);
    return {data, bytes, &release, owner.release()};
  }

  /// @throws ConfigError if no engine can run it
  void start(CollectiveOperation& operation) { self_->start(operation); }
  void progress() { self_->progress(); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void wait(CollectiveOperation const& operation) { self_->wait(operation); }
  /// @throws RankLost, RankStalled, CollectiveMismatch
  void finish() { self_->finish(); }

  /// Returns the communicator of the ranks with this rank's color, ordered by key and then by rank.   @collective
  [[nodiscard]] SharedMemoryCommunicator split(int color, int key) {
    return SharedMemoryCommunicator(self_->split(color, key));
  }

 private:
  using Self = std::shared_ptr<SharedMemoryRank>;

  explicit SharedMemoryCommunicator(Self self) : self_(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (world.engine != engine || !world.segment)
      throw ConfigError(std::string(engine == launch::Engine::thread ? "Thread" : "Process") +
                        "Communicator: this run's ranks are connected by the engine '" + launch::name(world.engine) +
                        "'; use comm::connect");
    return world;
  }
  static void release(void* owner, std::byte* data, std::size_t bytes) noexcept {
    std::unique_ptr<Self> const self(static_cast<Self*>(owner));
    (*self)->free(data, bytes);
  }

  Self self_;
};

}}}  // namespace lockstep::comm::detail
