// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/precision.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the names are the flag's words") {
  CHECK(std::string(app::name(app::Precision::fp32)) == "fp32");
  CHECK(std::string(app::name(app::Precision::bf16)) == "bf16");
  CHECK(std::string(app::name(app::Precision::fp16)) == "fp16");
}
