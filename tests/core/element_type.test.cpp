// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <lockstep/core/element_type.hpp>

using lockstep::element_type_of;
using lockstep::ElementType;

TEST_CASE("types, sizes and names agree") {
  CHECK(element_type_of<float> == ElementType::float32);
  CHECK(element_type_of<double> == ElementType::float64);
  CHECK(size_of(ElementType::float32) == sizeof(float));
  CHECK(size_of(ElementType::float64) == sizeof(double));
  CHECK(std::string(name(ElementType::float32)) == "float32");
  CHECK(std::string(name(ElementType::float64)) == "float64");
}
