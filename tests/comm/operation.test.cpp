// SPDX-License-Identifier: Apache-2.0
#include <lockstep/comm/operation.hpp>

#include <doctest/doctest.h>

#include <lockstep/comm/detail/check.hpp>

#include <vector>

using namespace lockstep;

TEST_CASE("a default operation is an empty sum, and valid") {
  comm::CollectiveOperation const operation;
  CHECK(operation.count == 0);
  CHECK(operation.reduction == comm::Reduction::sum);
  CHECK_NOTHROW(comm::detail::check(operation));
}

TEST_CASE("piggybacked scalars are limited to their capacity") {
  std::vector<double> scalars(comm::CollectiveOperation::max_piggybacked_scalars);
  comm::CollectiveOperation operation;
  operation.piggybacked_scalars = scalars;
  CHECK_NOTHROW(comm::detail::check(operation));
  scalars.resize(scalars.size() + 1);
  operation.piggybacked_scalars = scalars;
  CHECK_THROWS_AS(comm::detail::check(operation), ConfigError);
}

TEST_CASE("the result of unequal parts needs memory, unless all parts are empty") {
  std::vector<float> const mine(2);
  std::vector<Index> counts{2, 3};
  comm::CollectiveOperation operation{.collective = comm::Collective::all_gather, .in = mine.data(), .counts = counts};
  CHECK_THROWS_WITH_AS(comm::detail::check(operation, 0, 2), doctest::Contains("(data is null)"), ConfigError);
  counts = {0, 0};
  CHECK_NOTHROW(comm::detail::check(operation, 0, 2));
}

TEST_CASE("memory is aligned for its elements") {
  alignas(8) char memory[24];
  comm::CollectiveOperation operation{ElementType::float64, memory + 4, 1, comm::Reduction::sum, {}};
  CHECK_THROWS_AS(comm::detail::check(operation), ConfigError);
  operation.type = ElementType::float32;
  CHECK_NOTHROW(comm::detail::check(operation));
}
