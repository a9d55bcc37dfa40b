// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <type_traits>

#include <lockstep/train/deprecated.hpp>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("former names of train's types are aliases") {
  CHECK(std::is_same_v<train::StepsMade, train::ProgressCallback>);
}

#pragma GCC diagnostic pop
