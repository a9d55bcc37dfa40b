// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/element_type.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

using lockstep::element_type_of;
using lockstep::ElementType;

TEST_CASE_TEMPLATE("types, sizes and names agree", T, float, double, lockstep::bfloat16, lockstep::float16,
                   std::int32_t, std::int64_t, unsigned char) {
  auto const type = element_type_of<T>;
  CHECK(size_of(type) == sizeof(T));
  std::string const prefix = std::is_same_v<T, lockstep::bfloat16> ? "bfloat"
                             : std::is_signed_v<T> && std::is_integral_v<T>
                                 ? "int"
                                 : (std::is_integral_v<T> ? "uint" : "float");
  CHECK(name(type) == prefix + std::to_string(8 * sizeof(T)));
}

TEST_CASE("integers of one width are one type, whatever their name") {
  CHECK(element_type_of<long long> == ElementType::int64);
  CHECK(element_type_of<std::ptrdiff_t> == ElementType::int64);
  CHECK(element_type_of<float> == ElementType::float32);
  CHECK(element_type_of<double> == ElementType::float64);
}
