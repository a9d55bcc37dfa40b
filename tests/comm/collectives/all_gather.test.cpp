// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/collectives/all_gather.hpp>

#include <doctest/doctest.h>

#include <array>
#include <utility>
#include <vector>

#include <lockstep/comm/engine/connect.hpp>
#include <lockstep/comm/engine/self_communicator.hpp>
#include <lockstep/launch/run/run.hpp>

using namespace lockstep;

TEST_CASE("one rank gathers its own part, whether or not parts are equal") {
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

TEST_CASE("different parts on the ranks are a mismatch, also if their total is equal") {
  launch::Options options;
  options.threads = 2;
  for (auto const& [here, there] :
       {std::pair{std::array<Index, 2>{1, 4}, std::array<Index, 2>{2, 3}}, {{0, 6}, {6, 0}}, {{3, 3}, {2, 4}}}) {
    launch::run(options, [&, first = here, second = there](launch::World& world) {
      auto communicator = comm::connect(world);
      auto const& counts = world.rank == 0 ? first : second;
      std::vector<int> const in(static_cast<std::size_t>(counts[static_cast<std::size_t>(world.rank)]));
      std::vector<int> out(static_cast<std::size_t>(counts[0] + counts[1]));
      CHECK_THROWS_WITH_AS(comm::all_gather(communicator, in, out, counts).wait(),
                           doctest::Contains("the ranks disagree in operation 0"), CollectiveMismatch);
      return 0;
    });
  }
}
