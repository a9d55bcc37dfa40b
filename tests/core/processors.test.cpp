// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/processors.hpp>

#include <doctest/doctest.h>

#include <cstddef>

using namespace lockstep;

TEST_CASE("a process counts its allowed processors, not the machine's") {
  cpu_set_t before, one;
  REQUIRE(::sched_getaffinity(::getpid(), sizeof before, &before) == 0);
  CHECK(processors() == CPU_COUNT(&before));
  std::size_t first = 0;
  while (!CPU_ISSET(first, &before)) ++first;
  CPU_ZERO(&one);
  CPU_SET(first, &one);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof one, &one) == 0);
  CHECK(processors() == 1);
  REQUIRE(::sched_setaffinity(::getpid(), sizeof before, &before) == 0);
  CHECK(processors() == CPU_COUNT(&before));
}
