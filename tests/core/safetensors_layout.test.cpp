// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/safetensors_layout.hpp>

#include <doctest/doctest.h>

#include <string>

using namespace lockstep;

namespace {

void check(std::string const& tensors, std::uint64_t bytes) {
  check_safetensors_layout("p", json::parse("{" + tensors + "}"), bytes);
}
std::string tensor(std::string const& name, std::string const& offsets) {
  return "\"" + name + "\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":" + offsets + "}";
}

}  // namespace

TEST_CASE("tensors in any order fill the data, also if some are empty") {
  check("", 0);
  check(R"("__metadata__":{"a":"b"},)" + tensor("b", "[4,8]") + "," + tensor("a", "[0,4]"), 8);
  check(tensor("a", "[0,4]") + "," + tensor("b", "[4,4]") + "," + tensor("c", "[4,8]") + "," + tensor("d", "[8,8]"), 8);
}

TEST_CASE("common bytes, gaps, bytes of no tensor and damaged offsets are refused by name") {
  auto const refused = [](std::string const& tensors, std::uint64_t bytes, char const* why) {
    CHECK_THROWS_WITH_AS(check(tensors, bytes), doctest::Contains(why), DataError);
  };
  refused(tensor("a", "[0,8]") + "," + tensor("b", "[4,12]"), 12, "p: the tensors \"a\" and \"b\" have common bytes");
  refused(tensor("a", "[0,8]") + "," + tensor("b", "[0,8]"), 8, "\"a\" and \"b\" have common bytes");
  refused(tensor("a", "[0,8]") + "," + tensor("b", "[2,2]"), 8, "\"a\" and \"b\" have common bytes");
  refused(tensor("a", "[4,8]"), 8, "bytes 0 to 4 before the tensor \"a\" belong to no tensor");
  refused(tensor("a", "[0,4]") + "," + tensor("b", "[6,8]"), 8, "bytes 4 to 6 before the tensor \"b\"");
  refused(tensor("a", "[0,4]"), 8, "its tensors have 4 bytes, and 8 follow the header");
  refused(tensor("a", "[0,12]"), 8, "its tensors have 12 bytes, and 8 follow the header");
  refused("", 8, "its tensors have 0 bytes");
  refused(tensor("a", "[0]"), 0, "the tensor \"a\" has 1 offsets");
  refused(tensor("a", "[4,0]"), 0, "the tensor \"a\" has damaged offsets");
  refused(tensor("a", "[-4,0]"), 0, "the tensor \"a\" has damaged offsets");
}
