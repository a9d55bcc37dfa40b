// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/deprecated.hpp>

#include <doctest/doctest.h>

#include <type_traits>

#include <lockstep/optim/untouched_rows.hpp>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
TEST_CASE("old names of optim are aliases of the new ones") {
  CHECK(std::is_same_v<optim::Shadow, optim::HalfPrecisionCopy>);
  CHECK(optim::UntouchedRows::follow == optim::UntouchedRows::update);
  CHECK(optim::UntouchedRows::stay == optim::UntouchedRows::skip);
}
#pragma GCC diagnostic pop
