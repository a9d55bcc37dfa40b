// SPDX-License-Identifier: Apache-2.0
#include <lockstep/app/precision.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("the names are the flag's words") {
  CHECK(std::string(app::name(app::Precision::fp32)) == "fp32");
  CHECK(std::string(app::name(app::Precision::bf16)) == "bf16");
}

TEST_CASE("GPUs compute in float") {
  CHECK_NOTHROW(app::check_precision(app::Precision::bf16, app::Backend::host));
  CHECK_NOTHROW(app::check_precision(app::Precision::fp32, app::Backend::cuda));
  CHECK_THROWS_WITH_AS(app::check_precision(app::Precision::bf16, app::Backend::cuda),
                       doctest::Contains("--precision bf16 with --backend cuda"), ConfigError);
}
