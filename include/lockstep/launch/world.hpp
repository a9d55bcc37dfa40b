// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/shared_memory/shared_segment.hpp>
#include <lockstep/launch/wait_limits.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch {

class StopRequest;
class Store;

/// Place of one rank among all. `run` creates it, and `comm::connect` makes a communicator from it. A default World is
/// a single rank.
struct World {
  int rank = 0;                                       ///< in [0, size)
  int size = 1;                                       ///< number of ranks on all hosts
  int local_rank = 0;                                 ///< rank among the ranks of this host
  int local_size = 1;                                 ///< number of ranks on this host
  Engine engine = Engine::self;                       ///< how the ranks are connected
  std::uint64_t job = 0;                              ///< equal on all ranks, different in each run
  std::shared_ptr<SharedSegment> segment = {};        ///< null for Engine::self; private to the rank for Engine::store
  WaitLimits limits = {};                             ///< waiting times for other ranks, in seconds
  std::function<void(std::string const&)> warn = {};  ///< receives warnings; may be empty
  int restarts = 0;                                   ///< how often the ranks were restarted after a failure
  std::shared_ptr<Store> store = {};                  ///< for Engine::store
  std::shared_ptr<StopRequest const> stop_request = {};  ///< with OnSignal::request_stop
};

}}}  // namespace lockstep::launch
