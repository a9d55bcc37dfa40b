// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/persistent_objects.hpp>

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

namespace {
std::vector<int> gone;
template <int number>
struct Leaves {
  int value = 0;
  ~Leaves() { gone.push_back(number); }
};
}  // namespace

TEST_CASE("each owner has one object of each type, made once and destroyed in reverse order") {
  gone.clear();
  int a = 0, b = 0;
  {
    lockstep::PersistentObjects objects;
    objects.of<Leaves<1>>(&a).value = 7;
    objects.of<Leaves<2>>(&a).value = 1;
    objects.of<Leaves<1>>(&b).value = 8;
    objects.of<std::string>(nullptr) = "text";
    CHECK(objects.of<Leaves<1>>(&a).value == 7);
    CHECK(objects.of<Leaves<1>>(&b).value == 8);
    auto moved = std::move(objects);
    CHECK(moved.of<std::string>(nullptr) == "text");
    CHECK(moved.of<Leaves<1>>(&a).value == 7);
    CHECK(gone.empty());
  }
  CHECK(gone == std::vector<int>{1, 2, 1});
}
