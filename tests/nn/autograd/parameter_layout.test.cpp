// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/parameter_layout.hpp>

#include <doctest/doctest.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

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
struct Partly {
  nn::Parameter table{.shape = {4, 9}, .initializer = {}, .gradient_form = nn::GradientForm::by_rows};
  nn::Parameter frozen_table = table, weight{{17}, {}}, frozen{{16}, {}};
  nn::Buffer first{{17}}, second{{2, 8}};
  Partly() { frozen_table.frozen = frozen.frozen = true; }
  void visit(auto&& each) {
    each("frozen_table", frozen_table), each("frozen", frozen), each("table", table), each("weight", weight);
    each("first", first), each("second", second);
  }
};
struct Empty {
  void visit(auto&&) {}
};
struct SameName {
  nn::Parameter a{{1}, {}}, b{{1}, {}};
  void visit(auto&& each) { each("a", a), each("a", b); }
};
struct Nameless {
  nn::Parameter a{{1}, {}};
  void visit(auto&& each) { each("", a); }
};
struct Twice {
  nn::Parameter a{{1}, {}};
  void visit(auto&& each) { each("a", a), each("b", a); }
};
struct Many {
  std::vector<nn::Parameter> layers = std::vector<nn::Parameter>(30000, {{1}, {}});
  std::size_t again = 0;
  void visit(auto&& each) {
    for (std::size_t i = 0; i < layers.size(); ++i) each(std::to_string(i), layers[i]);
    if (again > 0) each("again", layers[again]);
  }
};
}  // namespace

TEST_CASE("parameters are named by their path, and are in the arena in reverse order") {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  auto const& entries = layout.entries();
  REQUIRE(entries.size() == 5);
  CHECK(entries[0].name == "stack.0.weight");
  CHECK(entries[3].name == "stack.1.bias");
  CHECK(entries[4].name == "head");
  CHECK(layout.parameters() == 2 * (21 + 3) + 16);
  Index end = layout.size();
  for (auto const& entry : entries) {  // each ends at the beginning of the previous one in forward order
    CHECK(entry.offset % nn::ParameterLayout::alignment == 0);
    CHECK(entry.offset + nn::ParameterLayout::padded(entry.size) == end);
    end = entry.offset;
  }
  CHECK(end == 0);
  CHECK(model.head.offset == 0);
  CHECK(model.head.ordinal == 4);
  CHECK(model.stack.layers[0].weight.ordinal == 0);
  CHECK(model.stack.layers[0].weight.offset == entries[0].offset);
  CHECK(model.stack.layers[1].bias.name == "stack.1.bias");
}

TEST_CASE("places are padded to 16 elements; frozen parameters follow all learned ones, and buffers are separate") {
  for (auto [size, padded] : {std::pair<Index, Index>{0, 0}, {1, 16}, {15, 16}, {16, 16}, {17, 32}})
    CHECK(nn::ParameterLayout::padded(size) == padded);
  Partly model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.size() == 32 + 48 + 16 + 48);
  CHECK(layout.learned_size() == 32 + 48);
  CHECK(layout.entries()[0].frozen);
  CHECK_FALSE(layout.entries()[0].by_rows());  // no layer writes its gradient
  CHECK(layout.entries()[2].by_rows());
  CHECK_FALSE(layout.entries()[3].by_rows());
  CHECK(layout.buffer_size() == 32 + 16);
  CHECK(model.second.offset == 32);
}

TEST_CASE("a model without parameters has an empty arena") {
  Empty model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.size() == 0);
  CHECK(layout.entries().empty());
}

TEST_CASE("a parameter without a name is refused, because files need names") {
  Nameless model;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(model)), doctest::Contains("has an empty name"),
                       ConfigError);
}

TEST_CASE("each of many parameters has its place, and a duplicate is found") {
  Many model;
  auto const layout = nn::ParameterLayout::of(model);
  CHECK(layout.entries().size() == 30000);
  CHECK(model.layers[0].offset == 29999 * nn::ParameterLayout::alignment);
  model.again = 7;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(model)),
                       doctest::Contains("\"again\" is visited twice"), ConfigError);
}

TEST_CASE("name clashes and parameters visited twice are refused by name") {
  SameName same;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(same)), doctest::Contains("named \"a\""), ConfigError);
  Twice twice;
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::ParameterLayout::of(twice)), doctest::Contains("\"b\" is visited twice"),
                       ConfigError);
}
