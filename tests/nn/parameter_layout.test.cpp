// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/parameter_layout.hpp>

#include <doctest/doctest.h>

#include <array>

using namespace lockstep;

namespace {
struct Layer {
  nn::Parameter weight{{3, 7}, nn::Initializer::fan_in(7)}, bias{{3}, {}};
  void visit(auto&& each) { each("weight", weight), each("bias", bias); }
};
struct Stack {
  std::array<Layer, 2> layers;
  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers.size(); ++i) each(std::to_string(i), layers[i]);
  }
};
struct Model {
  Stack stack;
  nn::Parameter head{{16}, {}};
  void visit(auto&& each) { each("stack", stack), each("head", head); }
};
struct Empty {
  void visit(auto&&) {}
};
struct SameName {
  nn::Parameter a{{1}, {}}, b{{1}, {}};
  void visit(auto&& each) { each("a", a), each("a", b); }
};
struct Twice {
  nn::Parameter a{{1}, {}};
  void visit(auto&& each) { each("a", a), each("b", a); }
};
}  // namespace

TEST_CASE("parameters are named by their path, and lie in the arena in reverse order") {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  auto const& entries = layout.entries();
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].name == "stack.0.weight");
  CHECK(entries[3].name == "stack.1.bias");
  CHECK(entries[4].name == "head");
  CHECK(layout.parameters() == 2 * (21 + 3) + 16);
  Index end = layout.size();
  for (auto const& entry : entries) {  // each ends where the one before it in forward order begins
    CHECK(entry.offset % nn::ParameterLayout::alignment == 0);
    CHECK(entry.offset + nn::ParameterLayout::padded(entry.size) == end);
    end = entry.offset;
  }
  CHECK(end == 0);
  CHECK(model.head.offset == 0);
  CHECK(model.head.ordinal == 4);
  CHECK(model.stack.layers[0].weight.ordinal == 0);
  CHECK(model.stack.layers[0].weight.offset == entries[0].offset);
}

TEST_CASE("a model without parameters has an empty arena") {
  Empty model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.size() == 0);
  CHECK(layout.entries().empty());
}

TEST_CASE("names that clash and parameters that are visited twice are refused by name") {
  SameName same;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(same)), doctest::Contains("named \"a\""), ConfigError);
  Twice twice;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(twice)), doctest::Contains("\"b\" is visited twice"),
                       ConfigError);
}
