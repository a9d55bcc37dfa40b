// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/collectives/broadcast.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>

#include <array>

using namespace lockstep;

TEST_CASE("one rank keeps its data, and there is no other root") {
  comm::SelfCommunicator self;
  std::array<float, 1> x{5};
  comm::broadcast(self, x, 0).wait();
  CHECK(x[0] == 5);
  CHECK_THROWS_WITH_AS((void)comm::broadcast(self, x, 1), doctest::Contains("the root of a broadcast is 1"),
                       ConfigError);
}
