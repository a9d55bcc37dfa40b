// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <lockstep/launch/run/detail/placed_world.hpp>

namespace lockstep { inline namespace LOCKSTEP_ABI { namespace launch::detail {

LOCKSTEP_INLINE World placed_world(Environment const& place, Options const& options, Engine engine) {
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
