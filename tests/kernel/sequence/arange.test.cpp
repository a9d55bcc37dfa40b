// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/sequence/arange.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <vector>

#include "kernel/view.hpp"

using namespace lockstep;

TEST_CASE("consecutive numbers begin anywhere") {
  ThreadPool pool(1);
  std::vector<std::int32_t> numbers(4, 9);
  kernel::Arange<HostSpace>::fill(memory::Stream<HostSpace>(pool), 7, lockstep_test::view(numbers, 3));
  CHECK(numbers == std::vector<std::int32_t>{7, 8, 9, 9});
  kernel::Arange<HostSpace>::fill(memory::Stream<HostSpace>(pool), 0, {nullptr, {0}});
}
