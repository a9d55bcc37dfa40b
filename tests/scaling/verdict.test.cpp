// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/verdict.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a run is bound by the phase that takes most of its steps") {
  using P = scaling::StepProfile;
  CHECK(scaling::judge(P{.forward_ms = 3, .backward_ms = 3, .communication_ms = 4}).bound == "compute");
  CHECK(scaling::judge(P{.forward_ms = 1, .backward_ms = 2, .communication_ms = 4}).bound == "communication");
  CHECK(scaling::judge(P{.communication_ms = 4, .pass_ms = 5}).bound == "compute");
  CHECK(scaling::judge(P{.forward_ms = 1, .optimizer_ms = 4}).bound == "optimizer");
  auto const data = scaling::judge(P{.data_wait_ms = 3, .forward_ms = 1});
  CHECK(data.bound == "data");
  CHECK(data.says.find("bound by data, which takes 75 % of a step") != std::string::npos);
  CHECK(scaling::judge(P{}).says.find("0 %") != std::string::npos);
}
