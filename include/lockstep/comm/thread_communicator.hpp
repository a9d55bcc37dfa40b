// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/shared_memory_communicator.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// Joins threads of one process. Every rank reads and writes the memory of all, in place.
/// Not thread-safe: each rank has its own. @determinism bitwise, equal to all engines of Lockstep
class ThreadCommunicator : public detail::SharedMemoryCommunicator {
 public:
  /// @throws ConfigError when the world is of another engine, or this rank is connected already
  explicit ThreadCommunicator(launch::World const& world) : SharedMemoryCommunicator(checked(world)) {}
  [[nodiscard]] char const* name() const noexcept { return launch::name(launch::Engine::thread); }

  /// Collective: the ranks that gave this rank's color, ordered by key and then by rank.
  [[nodiscard]] ThreadCommunicator split(int color, int key) { return ThreadCommunicator(split_self(color, key)); }

 private:
  explicit ThreadCommunicator(Self self) : SharedMemoryCommunicator(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (world.engine != launch::Engine::thread || !world.segment)
      throw ConfigError(std::string("ThreadCommunicator: this run's ranks are joined by the engine '") +
                        launch::name(world.engine) + "'; use comm::connect");
    return world;
  }
};
static_assert(Communicator<ThreadCommunicator>);

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
