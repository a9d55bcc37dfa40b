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
