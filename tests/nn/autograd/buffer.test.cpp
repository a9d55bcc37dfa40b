// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/buffer.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/nn/autograd/context.hpp>
#include <lockstep/nn/autograd/parameter_layout.hpp>
#include <lockstep/nn/module/initialize.hpp>

using namespace lockstep;

namespace {
struct Layer {
  nn::Parameter weight{{3}, nn::Initializer::constant(2)};
  nn::Buffer mean{{17}}, deviations{{2, 3}, nn::Initializer::constant(1)};
  void visit(auto&& each) { each("weight", weight), each("mean", mean), each("deviations", deviations); }
};
struct Model {
  Layer first, second;
  void visit(auto&& each) { each("first", first), each("second", second); }
};
struct SameName {
  nn::Parameter a{{1}, {}};
  nn::Buffer b{{1}};
  void visit(auto&& each) { each("a", a), each("a", b); }
};
struct Twice {
  nn::Buffer a{{1}};
  void visit(auto&& each) { each("a", a), each("b", a); }
};
}  // namespace

TEST_CASE("buffers are named by their path and are in their own arena, in forward order") {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.buffers().size() == 4);
  CHECK(layout.buffers()[0].name == "first.mean");
  CHECK(layout.buffers()[3].name == "second.deviations");
  CHECK(layout.buffers()[3].shape == std::vector<Index>{2, 3});
  CHECK(model.first.mean.offset == 0);
  CHECK(model.first.deviations.offset == 32);
  CHECK(model.second.mean.offset == 48);
  CHECK(layout.buffer_size() == 96);
  CHECK(layout.parameters() == 6);
  CHECK(layout.size() == 32);
}

TEST_CASE("they have their initial values, and a context lets layers read and write them") {
  Model model;
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<float> buffers(static_cast<std::size_t>(layout.buffer_size()), -1.0f);
  nn::initialize_buffers(layout, buffers.data());
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  context.parameters().bind_buffers(buffers.data());
  auto const mean = context.value<1>(model.second.mean);
  auto const deviations = context.value<2>(model.second.deviations);
  CHECK(mean.extent == Extents<1>{17});
  CHECK(deviations.extent == Extents<2>{2, 3});
  for (float e : mean.span()) CHECK(e == 0);
  for (float e : deviations.span()) CHECK(e == 1);
  deviations(1, 2) = 5;
  CHECK(buffers[static_cast<std::size_t>(model.second.deviations.offset) + 5] == 5);
  CHECK(context.value<2>(model.first.deviations)(1, 2) == 1);
}

TEST_CASE("a name belongs to one parameter or buffer, and each is visited once") {
  SameName same;
  Twice twice;
  CHECK_THROWS_WITH_AS(nn::ParameterLayout::of(same), doctest::Contains("are named \"a\""), ConfigError);
  CHECK_THROWS_WITH_AS(nn::ParameterLayout::of(twice), doctest::Contains("\"b\" is visited twice"), ConfigError);
}
