// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/error.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <type_traits>

using namespace lockstep;

TEST_CASE_TEMPLATE("every error is an Error and keeps its message", E, ShapeError, DataError, ConfigError, CudaError,
                   CommunicationError, CollectiveMismatch) {
  static_assert(std::is_base_of_v<std::runtime_error, E>);
  try {
    throw E("who: 3 is not 4; make it 4");
  } catch (Error const& error) {
    CHECK(std::string(error.what()) == "who: 3 is not 4; make it 4");
  }
}

TEST_CASE_TEMPLATE("an error about a rank names the rank", E, RankLost, RankStalled) {
  static_assert(std::is_base_of_v<CommunicationError, E>);
  try {
    throw E(3, "rank 3 is gone");
  } catch (E const& error) {
    CHECK(error.rank() == 3);
    CHECK(std::string(error.what()) == "rank 3 is gone");
  }
}

TEST_CASE("a message has at most 2,000 bytes: the beginning and the end of a longer one, and the number left out") {
  auto const limited = [](std::string const& message) { return std::string(DataError(message).what()); };
  CHECK(limited(std::string(2000, 'x')) == std::string(2000, 'x'));
  for (std::size_t const size : {std::size_t{2001}, std::size_t{2100}, std::size_t{11'000'000}}) {
    auto const message = limited("file.csv:1: " + std::string(size, 'x') + "; correct the name");
    CHECK(message.size() <= max_message_bytes);
    CHECK(message.starts_with("file.csv:1: xxx"));
    CHECK(message.ends_with("xxx; correct the name"));
    CHECK(message.find(" bytes left out ...] x") != std::string::npos);
  }
  std::string euros;
  for (int i = 0; i < 5000; ++i) euros += "\xe2\x82\xac";
  for (std::size_t shift = 0; shift < 3; ++shift) {  // characters stay whole
    auto const message = limited(std::string(shift, 'x') + euros);
    auto const note = message.find(" [... ");
    REQUIRE(note != std::string::npos);
    CHECK((note - shift) % 3 == 0);
    CHECK(message.substr(message.find("...] ") + 5).starts_with("\xe2\x82\xac"));
  }
  auto const twice = limited("a: " + limited(std::string(5000, 'x')));  // as code does that adds a file's name
  CHECK(twice.size() <= max_message_bytes);
}

TEST_CASE("error types do not catch each other") {
  static_assert(!std::is_base_of_v<RankLost, RankStalled> && !std::is_base_of_v<RankStalled, RankLost>);
  static_assert(!std::is_base_of_v<DataError, ConfigError> && !std::is_base_of_v<CommunicationError, CudaError>);
  CHECK_THROWS_AS(throw RankStalled(0, ""), CommunicationError);
}
