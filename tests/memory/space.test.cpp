// SPDX-License-Identifier: Apache-2.0
#include <lockstep/memory/space.hpp>

#include <doctest/doctest.h>

#include <string>

TEST_CASE("spaces have their properties") {
  static_assert(lockstep::HostSpace::host_accessible && !lockstep::CudaSpace::host_accessible);
  CHECK(std::string(lockstep::HostSpace::name) == "host");
  CHECK(std::string(lockstep::CudaSpace::name) == "cuda");
}
