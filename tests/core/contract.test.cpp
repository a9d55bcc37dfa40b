// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/contract.hpp>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>

using lockstep::checks;
using lockstep::Contract;
using lockstep::expect;
using lockstep::ShapeError;

TEST_CASE("levels are ordered by cost") {
  CHECK(Contract::off < Contract::cheap);
  CHECK(Contract::cheap < Contract::normal);
  CHECK(checks(lockstep::contract_level));
  CHECK(checks(Contract::off));
}

TEST_CASE("a broken rule throws its message; a satisfied one builds no message") {
  int built = 0;
  auto const say = [&] {
    ++built;
    return "rows: 3 where 4 are needed";
  };
  expect<ShapeError>(true, say);
  CHECK(built == 0);
  CHECK_THROWS_WITH_AS(expect<ShapeError>(false, say), "rows: 3 where 4 are needed", ShapeError);
  CHECK(built == 1);
}

TEST_CASE("the default level is normal") { static_assert(lockstep::contract_level == Contract::normal); }

TEST_CASE("rules hold in constant expressions") {
  constexpr auto half = [](int n) {
    expect<ShapeError>(n % 2 == 0, [] { return "odd"; });
    return n / 2;
  };
  static_assert(half(4) == 2);
  CHECK_THROWS_AS((void)half(3), ShapeError);
}
