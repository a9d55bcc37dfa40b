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
  double rider = 4;
  comm::Piece piece{lockstep::ElementType::float32, &x, 1, comm::Operation::sum, {&rider, 1}};
  self.start(piece);
  CHECK(piece.finished_seconds > 0);
  CHECK(piece.finished_seconds == piece.started_seconds);
  CHECK(x == 3);
  CHECK(rider == 4);
}
