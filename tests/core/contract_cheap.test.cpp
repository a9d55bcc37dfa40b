// SPDX-License-Identifier: Apache-2.0
#define LOCKSTEP_CONTRACT_LEVEL LOCKSTEP_CONTRACT_CHEAP
#include <lockstep/core/contract.hpp>

#include <string_view>
#include <typeinfo>

#include <doctest/doctest.h>

#include <lockstep/core/error.hpp>

using lockstep::checks;
using lockstep::Contract;

TEST_CASE("a lower level omits costlier checks, in symbols of its own") {
  static_assert(checks(Contract::cheap) && !checks(Contract::normal));
  CHECK_THROWS_AS(lockstep::expect<lockstep::ShapeError>(false, [] { return ""; }), lockstep::ShapeError);
  CHECK(std::string_view(typeid(Contract).name()).find("_cheap") != std::string_view::npos);
}
