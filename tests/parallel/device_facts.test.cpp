// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/device_facts.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("versions of libraries are written as their documentation writes them") {
  CHECK(parallel::detail::version_text(91900) == "9.19.0");
  CHECK(parallel::detail::version_text(130101) == "13.1.1");
  CHECK(parallel::detail::version_text(22809) == "2.28.9");
}
