// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/parameter.hpp>

#include <doctest/doctest.h>

using namespace lockstep;

TEST_CASE("a parameter's size is the product of its shape") {
  CHECK(nn::Parameter{{3, 4}, {}}.size() == 12);
  CHECK(nn::Parameter{{}, {}}.size() == 1);
  CHECK(nn::Parameter{{5, 0}, {}}.size() == 0);
}

TEST_CASE("the fan-in initializer is PyTorch's default: uniform with bound 1/sqrt(inputs)") {
  auto const start = nn::Initializer::fan_in(16);
  CHECK(start.kind == nn::Initializer::Kind::uniform);
  CHECK(start.scale == 0.25);
}

TEST_CASE("a parameter knows its layer's name in a model") {
  nn::Parameter weight{{3, 4}, {}};
  CHECK(weight.layer("Linear") == "Linear");
  weight.name = "encoder.0.query.weight";
  CHECK(weight.layer("Linear") == "Linear encoder.0.query");
  CHECK(weight.layer("Attention", 2) == "Attention encoder.0");
  CHECK(weight.layer("Attention", 4) == "Attention");
  weight.name = "weight";
  CHECK(weight.layer("Linear") == "Linear");
}
