// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/json_value.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>

using lockstep::DataError;
using namespace lockstep::json;

TEST_CASE("a value equals the value that it was made from") {
  CHECK(Value().is_null());
  CHECK(Value(true).boolean());
  CHECK(Value(std::uint8_t{7}).integer() == 7);
  CHECK(Value(std::int64_t{-5}).integer() == -5);
  CHECK(Value(0.5f).number() == 0.5);
  CHECK(Value(std::string_view("text")).string() == "text");
  CHECK(Value(Array{1, "a"}).array().size() == 2);
  CHECK(std::string(Value(1.0).type()) == "number");
  CHECK(std::string(Value(1).type()) == "integer");
  CHECK(std::string(Value(Object{}).type()) == "object");
  static_assert(!std::is_constructible_v<Value, int*>);
}

TEST_CASE("values are equal in type, value and order") {
  CHECK(Value(1) == Value(1));
  CHECK(Value(1) != Value(1.0));
  CHECK(Value(0) != Value(false));
  CHECK(Value(Object{{"a", 1}, {"b", 2}}) != Value(Object{{"b", 2}, {"a", 1}}));
}

TEST_CASE("an integer reads as a number, and no other conversion exists") {
  CHECK(Value(3).number() == 3.0);
  CHECK_THROWS_WITH_AS((void)Value(3.0).integer(), "json: an integer is needed, not number", DataError);
  CHECK_THROWS_WITH_AS((void)Value("3").number(), "json: a number is needed, not string", DataError);
  CHECK_THROWS_WITH_AS((void)Value(1).boolean(), "json: a bool is needed, not integer", DataError);
  CHECK_THROWS_WITH_AS((void)Value(nullptr).string(), "json: a string is needed, not null", DataError);
  CHECK_THROWS_WITH_AS((void)Value(Object{}).array(), "json: an array is needed, not object", DataError);
  CHECK_THROWS_WITH_AS((void)Value(Array{}).object(), "json: an object is needed, not array", DataError);
}

TEST_CASE("members and elements are accessible") {
  Value const value(Object{{"steps", 471}, {"final", Object{{"train_loss", 0.41}}}, {"list", Array{1, 2}}});
  CHECK(value.at("final").at("train_loss").number() == 0.41);
  CHECK(value.at("list").at(1).integer() == 2);
  REQUIRE(value.find("steps") != nullptr);
  CHECK(value.find("steps")->integer() == 471);
  CHECK(value.find("step") == nullptr);
  CHECK_THROWS_WITH_AS((void)value.at("step"), "json: there is no member \"step\"; the nearest is \"steps\"",
                       DataError);
  CHECK_THROWS_WITH_AS((void)Value(Object{}).at("a"), doctest::Contains("the object is empty"), DataError);
  CHECK_THROWS_WITH_AS((void)value.at("list").at(2), "json: there is no element 2 in an array of 2", DataError);
  CHECK_THROWS_AS((void)Value(1).find("a"), DataError);
}

TEST_CASE("integers beyond 63 bits are refused") {
  CHECK(Value(std::uint64_t{std::numeric_limits<std::int64_t>::max()}).integer() ==
        std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_WITH_AS((void)Value(std::numeric_limits<std::uint64_t>::max()),
                       doctest::Contains("18446744073709551615"), DataError);
}
