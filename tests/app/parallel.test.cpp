// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/parallel.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("names equal the flag's words") {
  CHECK(std::string(app::name(app::Parallel::single)) == "single");
  CHECK(std::string(app::name(app::Parallel::dp)) == "dp");
  CHECK(std::string(app::name(app::Parallel::ddp)) == "ddp");
}
