// SPDX-License-Identifier: Apache-2.0
#include <lockstep/train/files/names_in_file.hpp>

#include <string>
#include <string_view>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("all names, names with a prefix, a renamed prefix, or a function's names") {
  train::NamesInFile const all;
  CHECK(all("head.weight") == "head.weight");
  train::NamesInFile const part = "encoder.";
  CHECK(part("encoder.0.weight") == "encoder.0.weight");
  CHECK(part("head.weight").empty());
  CHECK(part.none("head.weight") ==
        "no name in the model begins with \"encoder.\"; its first parameter is \"head.weight\"");
  train::NamesInFile const alone("encoder.", "");
  CHECK(alone("encoder.0.weight") == "0.weight");
  CHECK(alone("head.weight").empty());
  std::string const prefix = "model.";
  train::NamesInFile const renamed = [prefix](std::string_view name) { return prefix + std::string(name); };
  train::NamesInFile const copy = renamed;
  CHECK(copy("head.weight") == "model.head.weight");
  CHECK(copy.none("w") ==
        "the function of names returns no name for any parameter of the model; its first parameter is \"w\"");
}

TEST_CASE("new rows are allowed by prefix, in a copy") {
  train::NamesInFile const all;
  auto const head = all.with_new_rows("head.");
  CHECK_FALSE(all.any_new_rows());
  CHECK(head.any_new_rows());
  CHECK(head("head.weight") == "head.weight");
  CHECK(head.may_have_new_rows("head.weight"));
  CHECK_FALSE(head.may_have_new_rows("body.weight"));
  auto const both = head.with_new_rows("words.");
  CHECK(both.may_have_new_rows("head.bias"));
  CHECK(both.may_have_new_rows("words.table"));
}
