// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/contract/contract.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the host offers the functions of every kernel") {
  static_assert(kernel::has_all_kernels<HostSpace>());
  CHECK(kernel::HasLinear<HostSpace>);
}
