// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/row_dropout.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/memory/space.hpp>

TEST_CASE("an element's number counts within its sample, in any row") {
  std::vector<lockstep::Index> const positions{40, 7, 19};
  lockstep::kernel::RowDropout<lockstep::HostSpace> const dropout{
      .layout = lockstep::kernel::SequenceLayout<lockstep::HostSpace>::padded(4, {}, {positions.data(), {3}})};
  CHECK(dropout.position(0) == 40);
  CHECK(dropout.position(3) == 40);
  CHECK(dropout.position(4) == 7);
  CHECK(dropout.position(11) == 19);
  CHECK(dropout.element(0, 10, 3) == 3);
  CHECK(dropout.element(3, 10, 3) == 33);
  CHECK(dropout.element(4, 10, 3) == 3);
  CHECK(dropout.element(11, 10, 9) == 39);
  CHECK_FALSE(dropout.mask.active());
}
