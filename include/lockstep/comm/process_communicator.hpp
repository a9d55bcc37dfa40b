// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <utility>

#include <lockstep/comm/communicator.hpp>
#include <lockstep/comm/detail/shared_memory_communicator.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep::inline LOCKSTEP_ABI::comm {

/// Joins processes on one host through a file without a name that they inherited, mapped by all. Leaves nothing behind,
/// however they end. Not thread-safe. @determinism bitwise, equal to all engines of Lockstep
class ProcessCommunicator : public detail::SharedMemoryCommunicator {
 public:
  /// @throws ConfigError when the world is of another engine, or this rank is connected already
  explicit ProcessCommunicator(launch::World const& world) : SharedMemoryCommunicator(checked(world)) {}
  [[nodiscard]] char const* name() const noexcept { return launch::name(launch::Engine::process); }

  /// Collective: the ranks that gave this rank's color, ordered by key and then by rank.
  [[nodiscard]] ProcessCommunicator split(int color, int key) { return ProcessCommunicator(split_self(color, key)); }

 private:
  explicit ProcessCommunicator(Self self) : SharedMemoryCommunicator(std::move(self)) {}
  static launch::World const& checked(launch::World const& world) {
    if (world.engine != launch::Engine::process || !world.segment)
      throw ConfigError(std::string("ProcessCommunicator: this run's ranks are joined by the engine '") +
                        launch::name(world.engine) + "'; use comm::connect");
    return world;
  }
};
static_assert(Communicator<ProcessCommunicator>);

}  // namespace lockstep::inline LOCKSTEP_ABI::comm
