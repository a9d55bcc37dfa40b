// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/all_gather.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/self_communicator.hpp>

#include <array>

using namespace lockstep;

TEST_CASE("one rank gathers what it gives, whether or not the parts are equal") {
  comm::SelfCommunicator self;
  std::array<int, 2> const in{7, 8};
  std::array<Index, 1> const counts{2};
  std::array<int, 2> out{}, again{};
  comm::all_gather(self, in, out).wait();
  comm::all_gather(self, in, again, counts).wait();
  CHECK(out == in);
  CHECK(again == in);
}

TEST_CASE("sizes must fit") {
  comm::SelfCommunicator self;
  std::array<int, 2> const in{};
  std::array<int, 3> out{};
  std::array<Index, 1> const counts{3};
  CHECK_THROWS_WITH_AS((void)comm::all_gather(self, in, out),
                       doctest::Contains("rank 0 gives 2 elements and has room for 3; all ranks together give 2"),
                       ShapeError);
  CHECK_THROWS_AS((void)comm::all_gather(self, in, out, counts), ShapeError);
}
