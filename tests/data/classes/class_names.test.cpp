// SPDX-License-Identifier: Apache-2.0
#include <lockstep/data/classes/class_names.hpp>

#include <string>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;
using Names = std::vector<std::string>;

TEST_CASE("labels are found by name, else by number") {
  data::ClassNames const classes({"rest", "walk", "0"});
  CHECK(classes.size() == 3);
  CHECK(classes.find("walk") == 1);
  CHECK(classes.find("0") == 2);  // a name takes precedence
  CHECK(classes.find("1") == 1);
  for (auto const* unknown : {"3", "-1", "Walk", "", "1.0", " 1", "99999999999"}) {
    CAPTURE(unknown);
    CHECK_FALSE(classes.find(unknown).has_value());
  }
  CHECK(classes.why_unknown("wlak") == "label \"wlak\" is not one of the 3 classes; the nearest is \"walk\"");
}

TEST_CASE("class labels are sorted by name, or by value if all are numbers") {
  CHECK(data::ClassNames::of_labels({"walk", "rest", "walk"}).names() == Names{"rest", "walk"});
  CHECK(data::ClassNames::of_labels({"10", "2", "2"}).names() ==
        Names{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10"});
  CHECK(data::ClassNames::of_labels({"1", "two"}).names() == Names{"1", "two"});
  CHECK(data::ClassNames::of_labels({"-1", "1"}).names() == Names{"-1", "1"});
  CHECK(data::ClassNames::of_labels({"5000", "1"}).names() == Names{"1", "5000"});
  CHECK(data::ClassNames::of_labels({}).size() == 0);
}

TEST_CASE("a name that appears twice is refused") {
  CHECK_THROWS_WITH_AS(data::ClassNames(Names{"a", "b", "a"}),
                       "ClassNames: the class \"a\" appears twice; name each class once", DataError);
}
