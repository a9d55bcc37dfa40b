// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/collectives/all_reduce.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/engine/self_communicator.hpp>

#include <array>
#include <cstdint>

using namespace lockstep;

TEST_CASE("one rank's elements are their own sum, average and maximum") {
  comm::SelfCommunicator self;
  std::array<double, 2> x{3, -4};
  for (auto const reduction : {comm::Reduction::sum, comm::Reduction::average, comm::Reduction::max}) {
    auto const work = comm::all_reduce(self, x, reduction);
    CHECK(work.operation().type == ElementType::float64);
    CHECK(work.operation().reduction == reduction);
    CHECK(x == std::array<double, 2>{3, -4});
  }
}

TEST_CASE("logical results are 0 or 1") {
  comm::SelfCommunicator self;
  std::array<std::int64_t, 3> x{3, 0, -4};
  comm::all_reduce(self, x, comm::Reduction::logical_and).wait();
  CHECK(x == std::array<std::int64_t, 3>{1, 0, 1});
}
