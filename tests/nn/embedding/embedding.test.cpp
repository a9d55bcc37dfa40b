// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/embedding/embedding.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/autograd/parameter_layout.hpp>

using namespace lockstep;

TEST_CASE("an embedding is a table of one parameter, from which rows are looked up") {
  nn::Embedding table(7, 3);
  auto const layout = nn::ParameterLayout::of(table);
  REQUIRE(layout.entries().size() == 1);
  CHECK(layout.entries()[0].name == "weight");
  CHECK(layout.entries()[0].shape == std::vector<Index>{7, 3});
  CHECK(layout.entries()[0].initializer.kind == nn::Initializer::Kind::normal);
  CHECK(layout.entries()[0].initializer.scale == 0.02);
  auto const lookup = table.of(42);  // any type of column: FusedEmbedding checks it
  CHECK(lookup.column == 42);
  CHECK(lookup.table.shape == std::vector<Index>{7, 3});
}

TEST_CASE("sizes below 1 are refused") {
  CHECK_THROWS_WITH_AS(nn::Embedding(0, 3), doctest::Contains("0 rows of width 3"), ConfigError);
  CHECK_THROWS_WITH_AS(nn::Embedding(3, 0), doctest::Contains("3 rows of width 0"), ConfigError);
  CHECK_NOTHROW(nn::Embedding(1, 1));
  CHECK_THROWS_WITH_AS(nn::Embedding(3, -1), doctest::Contains("3 rows of width -1"), ConfigError);
}
