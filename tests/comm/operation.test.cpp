// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/operation.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/detail/check.hpp>

#include <vector>

using namespace lockstep;

TEST_CASE("a default operation is an empty sum, and valid") {
  comm::Piece const piece;
  CHECK(piece.count == 0);
  CHECK(piece.operation == comm::Operation::sum);
  CHECK_NOTHROW(comm::detail::check(piece));
}

TEST_CASE("piggybacked scalars are limited to their capacity") {
  std::vector<double> riders(comm::Piece::most_riders);
  comm::Piece piece;
  piece.rider = riders;
  CHECK_NOTHROW(comm::detail::check(piece));
  riders.resize(riders.size() + 1);
  piece.rider = riders;
  CHECK_THROWS_AS(comm::detail::check(piece), ConfigError);
}

TEST_CASE("memory is aligned for its elements") {
  alignas(8) char memory[24];
  comm::Piece piece{ElementType::float64, memory + 4, 1, comm::Operation::sum, {}};
  CHECK_THROWS_AS(comm::detail::check(piece), ConfigError);
  piece.type = ElementType::float32;
  CHECK_NOTHROW(comm::detail::check(piece));
}
