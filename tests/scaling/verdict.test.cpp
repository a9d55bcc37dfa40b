// SPDX-License-Identifier: Apache-2.0
#include <lockstep/scaling/verdict.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a rank that the others wait for is named, with what keeps it; a small lag is not") {
  scaling::StepProfile profile{.communication_ms = 60,
                               .pass_ms = 40,
                               .slowest = {.rank = 3, .phase = "data", .ms = 70.25, .least_ms = 1.5, .lag_ms = 60}};
  auto const verdict = scaling::judge(profile);
  CHECK(verdict.bound == "communication");
  CHECK(
      verdict.says.ends_with("60 % of a step; the others wait for rank 3, whose data takes 70.2 ms of a step, while "
                             "the fastest rank's takes 1.5 ms"));
  profile.slowest.lag_ms = 21;
  CHECK(scaling::judge(profile).says.find("wait for rank 3") != std::string::npos);
  profile.slowest.lag_ms = 19;
  CHECK(scaling::judge(profile).says.ends_with("a larger batch per device would make waits rarer"));
}

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
  CHECK(scaling::judge(P{}).bound == "none");
}
