// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/engine.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace lockstep::launch;

TEST_CASE("engines have the names that run records use") {
  CHECK(std::string(name(Engine::self)) == "self");
  CHECK(std::string(name(Engine::thread)) == "thread");
  CHECK(std::string(name(Engine::process)) == "process");
  CHECK(std::string(name(Engine::mpi)) == "mpi");
  CHECK(std::string(name(Engine::store)) == "store");
  CHECK(std::string(name(Engine::nccl)) == "nccl");
}
