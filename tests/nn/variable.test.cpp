// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/variable.hpp>

#include <doctest/doctest.h>

#include <array>

#include <lockstep/memory/space.hpp>

using namespace lockstep;

TEST_CASE("a reshaped variable is the same value and the same gradient") {
  std::array<float, 6> values{1, 2, 3, 4, 5, 6}, gradients{6, 5, 4, 3, 2, 1};
  nn::GradientSlot<float> slot{gradients.data(), 6};
  nn::Variable<float, 1, HostSpace> const flat{{values.data(), {6}}, &slot};
  auto const matrix = flat.reshape(Extents<2>{2, 3});
  CHECK(matrix.extent(0) == 2);
  CHECK(matrix.extent(1) == 3);
  CHECK(matrix.value(1, 0) == 4);
  CHECK(matrix.gradient()(1, 2) == 1);
}
