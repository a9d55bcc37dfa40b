// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/index.hpp>

#include <doctest/doctest.h>

#include <limits>
#include <type_traits>

TEST_CASE("an index is signed and counts anything that fits in memory") {
  static_assert(std::is_signed_v<lockstep::Index>);
  CHECK(std::numeric_limits<lockstep::Index>::max() >= std::numeric_limits<std::ptrdiff_t>::max());
  CHECK(lockstep::Index{2} - lockstep::Index{3} < 0);
}
