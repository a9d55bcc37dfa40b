// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/name_table.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("each name is found, among few and among many") {
  std::vector<std::string> names;
  auto const name_of = [&](std::size_t i) { return std::string_view(names[i]); };
  NameTable table;
  CHECK(table.find("", name_of) == NameTable::none);
  for (std::size_t i = 0; i < 100'000; ++i) {
    names.push_back("layer." + std::to_string(i) + ".weight");
    REQUIRE(table.add(name_of) == NameTable::none);
    if (i < 100) REQUIRE(table.find("layer." + std::to_string(i + 1) + ".weight", name_of) == NameTable::none);
  }
  for (std::size_t i = 0; i < names.size(); ++i) REQUIRE(table.find(names[i], name_of) == i);
  CHECK(table.find("layer", name_of) == NameTable::none);
}

TEST_CASE("a duplicate name is not added") {
  for (auto const count : {std::size_t{1}, std::size_t{16}, std::size_t{17}, std::size_t{5000}}) {
    std::vector<std::string> names;
    auto const name_of = [&](std::size_t i) { return std::string_view(names[i]); };
    NameTable table;
    for (std::size_t i = 0; i < count; ++i) {
      names.push_back(std::to_string(i));
      REQUIRE(table.add(name_of) == NameTable::none);
    }
    names.push_back(std::to_string(count / 2));
    CHECK(table.add(name_of) == count / 2);
    names.back() = "";
    CHECK(table.add(name_of) == NameTable::none);
    CHECK(table.find("", name_of) == count);
  }
}
