// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/embedding/segments.hpp>

#include <doctest/doctest.h>

#include <tuple>
#include <type_traits>

using namespace lockstep;

TEST_CASE("segments keep their parts, in order") {
  auto const both = nn::interleave(nn::sum(1, 2.5), 'c');
  static_assert(decltype(both)::arrangement == kernel::Arrangement::interleaved);
  static_assert(std::is_same_v<decltype(both.all), std::tuple<nn::Sum<int, double>, char>>);
  CHECK(std::get<1>(std::get<0>(both.all).parts) == 2.5);
  CHECK(std::get<1>(both.all) == 'c');
  static_assert(decltype(nn::concatenate(1, 2))::arrangement == kernel::Arrangement::concatenated);
}
