// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/deprecated.hpp>

#include <doctest/doctest.h>

#include <type_traits>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("former names of the communicator's types are the new types") {
  CHECK(std::is_same_v<comm::Operation, comm::Reduction>);
  CHECK(std::is_same_v<comm::Piece, comm::CollectiveOperation>);
}

#pragma GCC diagnostic pop
