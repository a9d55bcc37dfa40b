// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/random_suffix.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

TEST_CASE("no suffix is given twice, and all can be part of a file's name") {
  std::set<std::string> given;
  for (int i = 0; i < 1000; ++i) {
    auto const suffix = lockstep::random_suffix();
    CHECK(suffix.size() == 16);
    CHECK(suffix.find_first_not_of("0123456789abcdef") == std::string::npos);
    given.insert(suffix);
  }
  CHECK(given.size() == 1000);
}
