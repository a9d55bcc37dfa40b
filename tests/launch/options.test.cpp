// SPDX-License-Identifier: Apache-2.0
#include <lockstep/launch/options.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("invalid input is distinguished from later errors") {
  CHECK(launch::exit_code(ConfigError("x")) == 2);
  CHECK(launch::exit_code(DataError("x")) == 2);
  CHECK(launch::exit_code(ShapeError("x")) == 1);
  CHECK(launch::exit_code(RankLost(1, "x")) == 1);
  CHECK(launch::exit_code_of("test", [] { return 3; }) == 3);
  CHECK(launch::exit_code_of("test", []() -> int { throw DataError("this message is expected"); }) == 2);
  CHECK(launch::exit_code(std::exception()) == 1);
}

TEST_CASE("by default a run is one rank in this process") {
  launch::Options const options;
  CHECK(options.nproc == 1);
  CHECK(options.threads == 1);
}
