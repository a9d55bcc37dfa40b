// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/residual.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("residual: by default there is no residual and no dropout") {
  kernel::Residual<float, HostSpace> const nothing;
  CHECK(nothing.value.data == nullptr);
  CHECK_FALSE(nothing.dropout.mask.active());
}
