// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <type_traits>

#include <lockstep/scaling/deprecated.hpp>

using namespace lockstep;

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

TEST_CASE("former names of scaling's types and functions are aliases") {
  scaling::StepProfile const profile{.forward_ms = 3, .backward_ms = 3, .communication_ms = 4};
  CHECK(std::is_same_v<scaling::Verdict, scaling::Bottleneck>);
  CHECK(scaling::judge(profile).bound == "compute");
  CHECK(scaling::judge(profile).summary == scaling::find_bottleneck(profile).summary);
}

#pragma GCC diagnostic pop
