// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/engine.hpp>
#include <lockstep/launch/environment/environment.hpp>
#include <lockstep/launch/options.hpp>
#include <lockstep/launch/world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

/// Returns the World of a rank that another launcher has started, before the rendezvous.
inline World launched_world(Environment const& place, Options const& options, Engine engine) {
  World world;
  world.rank = place.rank;
  world.size = place.size;
  world.local_rank = place.local_rank;
  world.local_size = place.local_size;
  world.engine = engine;
  world.limits = options.limits;
  world.warn = options.warn;
  world.restarts = place.restarts;
  return world;
}

}}}  // namespace lockstep::launch::detail
