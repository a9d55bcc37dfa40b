// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include <lockstep/core/base64.hpp>

using namespace lockstep;

TEST_CASE("the examples of RFC 4648 are encoded") {
  for (auto const& [bytes, text] : std::vector<std::pair<std::string, std::string>>{{"", ""},
                                                                                    {"f", "Zg=="},
                                                                                    {"fo", "Zm8="},
                                                                                    {"foo", "Zm9v"},
                                                                                    {"foob", "Zm9vYg=="},
                                                                                    {"fooba", "Zm9vYmE="},
                                                                                    {"foobar", "Zm9vYmFy"}}) {
    CHECK(to_base64(bytes) == text);
    CHECK(from_base64(text) == bytes);
  }
}

TEST_CASE("a round trip keeps every byte at every length") {
  std::string bytes;
  for (int i = 0; i < 300; ++i) {
    bytes += static_cast<char>(static_cast<unsigned char>(i * 37));
    REQUIRE(from_base64(to_base64(bytes)) == bytes);
  }
}

TEST_CASE("invalid base64 is refused with the place") {
  CHECK_THROWS_WITH_AS(from_base64("Zm9v\n"), doctest::Contains("character 5 "), DataError);
  CHECK_THROWS_WITH_AS(from_base64("Z*9v"), doctest::Contains("character 1 "), DataError);
  CHECK_THROWS_AS(from_base64("Zm=v"), DataError);
  CHECK_THROWS_AS(from_base64("===="), DataError);
  CHECK_THROWS_AS(from_base64("Zh=="), DataError);  // more bits than those of 'f'
}
