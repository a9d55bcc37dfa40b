// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/engine/connect.hpp>

#include <doctest/doctest.h>

#include <lockstep/memory/buffer.hpp>

#include <string>

#include "launch/ranks.hpp"

using namespace lockstep_test;
using lockstep::comm::connect;

namespace {

/// Returns 0 if the world's engine has this name, and a sum over its ranks is correct.
int has_engine(launch::World& world, std::string const& name) {
  auto c = connect(world);
  lockstep::memory::Buffer<float> buffer(2, c);
  buffer[0] = 1;
  lockstep::comm::CollectiveOperation operation{
      lockstep::ElementType::float32, buffer.data(), 1, lockstep::comm::Reduction::sum, {}};
  c.start(operation);
  c.finish();
  return c.name() == name && c.rank() == world.rank && c.size() == world.size &&
                 buffer[0] == static_cast<float>(world.size)
             ? 0
             : 1;
}

}  // namespace

TEST_CASE("rank: process" * doctest::skip()) {
  be_rank([](launch::World& world) { return has_engine(world, "process"); });
}

TEST_CASE("a world is connected by its engine") {
  launch::World alone;
  CHECK(has_engine(alone, "self") == 0);
  CHECK(launch::run({.threads = 2}, [](launch::World& world) { return has_engine(world, "thread"); }) == 0);
  CHECK(run_processes(2, "rank: process").code == 0);
}

TEST_CASE("a world that connect does not support is refused, with the function that does") {
  launch::World world;
  world.engine = launch::Engine::mpi;
  CHECK_THROWS_WITH_AS((void)connect(world), doctest::Contains("mpi_communicator.hpp"), lockstep::ConfigError);
  world.engine = launch::Engine::store;
  CHECK_THROWS_WITH_AS((void)connect(world), doctest::Contains("on several hosts"), lockstep::ConfigError);
}
