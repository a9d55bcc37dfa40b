// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/collectives/reduce_scatter.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>

#include <array>

using namespace lockstep;

TEST_CASE("one rank's share is all") {
  comm::SelfCommunicator self;
  std::array<float, 3> const in{1, 2, 3};
  std::array<float, 3> out{};
  comm::reduce_scatter(self, in, out).wait();
  CHECK(out == in);
}

TEST_CASE("sizes must fit") {
  comm::SelfCommunicator self;
  std::array<float, 3> const in{};
  std::array<float, 2> out{};
  CHECK_THROWS_WITH_AS((void)comm::reduce_scatter(self, in, out),
                       "comm::reduce_scatter: in has 3 elements; it needs 1 times the 2 of out", ShapeError);
}
