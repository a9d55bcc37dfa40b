// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/world.hpp>

#include <doctest/doctest.h>

using namespace lockstep::launch;

TEST_CASE("a default world is one single rank") {
  World const world;
  CHECK(world.rank == 0);
  CHECK(world.size == 1);
  CHECK(world.local_rank == 0);
  CHECK(world.local_size == 1);
  CHECK(world.engine == Engine::self);
  CHECK(world.segment == nullptr);
}
