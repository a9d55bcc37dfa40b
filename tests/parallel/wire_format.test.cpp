// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/wire_format.hpp>

#include <string>

#include <doctest/doctest.h>

using namespace lockstep;
using parallel::WireFormat;

TEST_CASE("a wire format has the flag's word and the type of its elements") {
  CHECK(std::string(parallel::name(WireFormat::float32)) == "fp32");
  CHECK(std::string(parallel::name(WireFormat::bfloat16)) == "bf16");
  CHECK(std::string(parallel::name(WireFormat::float16)) == "fp16");
  CHECK(parallel::element_type(WireFormat::float32) == ElementType::float32);
  CHECK(parallel::element_type(WireFormat::bfloat16) == ElementType::bfloat16);
  CHECK(parallel::element_type(WireFormat::float16) == ElementType::float16);
}
