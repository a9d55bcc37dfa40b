// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/engine/self_communicator.hpp>

#include <doctest/doctest.h>

#include "comm/operations.hpp"
#include "malloc_count.hpp"

using namespace lockstep_test;

TEST_CASE("one rank has the properties of every engine") { CHECK_NOTHROW(conformance(launch::World{})); }

TEST_CASE("one rank supports every operation") { CHECK_NOTHROW(operations(launch::World{})); }

TEST_CASE("one rank does not allocate in the steady state") {
  if (!counts_mallocs) return;
  CHECK_NOTHROW(allocates_nothing_when_steady(launch::World{}, [] { return mallocs.load(); }));
}

TEST_CASE("an operation of one rank is complete at its start") {
  comm::SelfCommunicator self;
  float x = 3;
  double scalar = 4;
  comm::CollectiveOperation operation{lockstep::ElementType::float32, &x, 1, comm::Reduction::sum, {&scalar, 1}};
  self.start(operation);
  CHECK(operation.finished_seconds > 0);
  CHECK(operation.finished_seconds == operation.started_seconds);
  CHECK(x == 3);
  CHECK(scalar == 4);
}

TEST_CASE("one rank ignores the reduction of an operation that reduces nothing") {
  comm::SelfCommunicator self;
  float const in[]{3, 4};
  float out[]{0, 0};
  for (auto const reduction : {comm::Reduction::logical_or, comm::Reduction::logical_and, comm::Reduction::average}) {
    comm::CollectiveOperation gather{
        .data = out, .count = 2, .reduction = reduction, .collective = comm::Collective::all_gather, .in = in};
    self.start(gather);
    CHECK(out[0] == 3);
    CHECK(out[1] == 4);
    comm::CollectiveOperation broadcast{
        .data = out, .count = 2, .reduction = reduction, .collective = comm::Collective::broadcast};
    self.start(broadcast);
    CHECK(out[0] == 3);
    CHECK(out[1] == 4);
  }
}
