// SPDX-License-Identifier: Apache-2.0
#include <lockstep/core/error.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
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

TEST_CASE("error types do not catch each other") {
  static_assert(!std::is_base_of_v<RankLost, RankStalled> && !std::is_base_of_v<RankStalled, RankLost>);
  static_assert(!std::is_base_of_v<DataError, ConfigError> && !std::is_base_of_v<CommunicationError, CudaError>);
  CHECK_THROWS_AS(throw RankStalled(0, ""), CommunicationError);
}
