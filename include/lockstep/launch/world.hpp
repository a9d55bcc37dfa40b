// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/shared_segment.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep::inline LOCKSTEP_ABI::launch {

class StopRequest;
class Store;

/// The place of one rank among all: data, made by `run`, from which `comm::connect` makes a communicator. A default
/// World is one rank alone.
struct World {
  int rank = 0;
  int size = 1;
  int local_rank = 0;  ///< among the ranks of this host
  int local_size = 1;
  Engine engine = Engine::self;
  std::uint64_t job = 0;                        ///< the same on all ranks, another for each run
  std::shared_ptr<SharedSegment> segment = {};  ///< none for Engine::self; of Engine::store this rank's own
  WaitLimits limits = {};
  std::function<void(std::string const&)> warn = {};     ///< where warnings go; none: nowhere
  int restarts = 0;                                      ///< how often the ranks were started anew after a failure
  std::shared_ptr<Store> store = {};                     ///< of Engine::store
  std::shared_ptr<StopRequest const> stop_request = {};  ///< with OnSignal::ask
};

}  // namespace lockstep::inline LOCKSTEP_ABI::launch
