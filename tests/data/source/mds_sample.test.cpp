// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/source/mds_sample.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "array_files.hpp"

using namespace lockstep;
using namespace lockstep_test;

namespace {

data::MdsSample make(std::vector<data::detail::MdsColumn> columns, std::string const& bytes) {
  std::vector<std::byte> data(bytes.size());
  if (!bytes.empty()) std::memcpy(data.data(), bytes.data(), bytes.size());
  return {std::make_shared<std::vector<data::detail::MdsColumn> const>(std::move(columns)), std::move(data), "here"};
}

}  // namespace

TEST_CASE("sizes of all variable-length values come first") {
  auto const sample =
      make({{"a", "str", 0}, {"b", "uint16", 2}, {"c", "bytes", 0}},
           little<std::uint32_t>(2) + little<std::uint32_t>(1) + "hi" + little<std::uint16_t>(500) + "x");
  CHECK(sample.text("a") == "hi");
  CHECK(sample.number<std::uint16_t>("b") == 500);
  CHECK(sample.number<std::int32_t>("b") == 500);
  CHECK(sample.bytes("c").size() == 1);
  CHECK_THROWS_WITH_AS(static_cast<void>(sample.text("aa")), doctest::Contains("no column \"aa\"; did you mean \"a\"?"),
                       DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(sample.number<float>("b")),
                       doctest::Contains("the encoding uint16, but float32 was requested"), DataError);
  CHECK_THROWS_WITH_AS(static_cast<void>(sample.text("c")), doctest::Contains("str was requested"), DataError);
}

TEST_CASE("encodings match the numbers that they store") {
  auto const name = [](char const* encoding) { return data::detail::mds_type(encoding).name(); };
  CHECK(name("int") == "int64");
  CHECK(name("float64") == "float64");
  CHECK(name("ndarray:int8:3,4") == "int8");
  auto const halves = make({{"x", "ndarray:float16:2", 4}}, bytes_of(std::vector<std::uint16_t>{0x3c00, 0xc000}));
  CHECK(halves.numbers<float>("x") == std::vector<float>{1, -2});
  for (auto const* none : {"ndarray", "ndarray:int8", "jpeg", "float8"}) CHECK(data::detail::mds_type(none).bytes == 0);
}

TEST_CASE("samples that do not fit their columns are refused") {
  std::vector<data::detail::MdsColumn> const columns{{"a", "str", 0}, {"b", "int", 8}};
  auto const refused = [&](std::string const& bytes, char const* why) {
    CHECK_THROWS_WITH_AS(make(columns, bytes), doctest::Contains(why), DataError);
  };
  refused("", "no room for its sizes");
  refused(little<std::uint32_t>(9) + "12345678", "reach beyond its end");
  refused(little<std::uint32_t>(0xffffffff) + "12345678", "reach beyond its end");
  refused(little<std::uint32_t>(0) + "123456789", "longer than its values");
  auto const two = make({{"x", "ndarray:int32:2", 8}}, "12345678");
  CHECK_THROWS_WITH_AS(static_cast<void>(two.number<std::int32_t>("x")), doctest::Contains("holds 2 numbers"),
                       DataError);
}
