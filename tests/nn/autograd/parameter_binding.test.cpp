// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/parameter_binding.hpp>

#include <doctest/doctest.h>

#include <vector>

using namespace lockstep;

namespace {
struct Model {
  nn::Parameter bias{{3}, {}}, weight{{2, 3}, {}};
  nn::Buffer mean{{3}, nn::Initializer::constant(1)};
  void visit(auto&& each) { each("bias", bias), each("weight", weight), each("mean", mean); }
};
struct Fixture {
  Model model;
  nn::ParameterLayout layout = nn::ParameterLayout::of(model);
  std::vector<float> values = std::vector<float>(static_cast<std::size_t>(layout.size())), gradients = values;
};
}  // namespace

TEST_CASE("a parameter's value is at its offset, with its shape") {
  Fixture f;
  for (std::size_t i = 0; i < f.values.size(); ++i) f.values[i] = static_cast<float>(i);
  nn::ParameterBinding<float, HostSpace> binding;
  binding.bind(f.values.data(), f.gradients.data(), f.layout);
  auto const weight = binding.value<2>(f.model.weight);
  CHECK(weight.extent == Extents<2>{2, 3});
  CHECK(weight.data == f.values.data() + f.model.weight.offset);
  auto const target = binding.gradients().target(f.model.bias);
  CHECK(target.data == f.gradients.data() + f.model.bias.offset);
  CHECK(binding.gradients().written(static_cast<std::size_t>(f.model.bias.ordinal)));
}

TEST_CASE("a parameter or buffer of another rank is refused before its shape is read") {
  Fixture f;
  std::vector<float> buffers(static_cast<std::size_t>(f.layout.buffer_size()));
  nn::ParameterBinding<float, HostSpace> binding;
  binding.bind(f.values.data(), f.gradients.data(), f.layout);
  binding.bind_buffers(buffers.data());
  CHECK_THROWS_WITH_AS(static_cast<void>(binding.value<2>(f.model.bias)),
                       "Context: forward reads a tensor of shape [3] as one of 2 dimensions: call context.value<1>, "
                       "and reshape the view",
                       ShapeError);
  CHECK_THROWS_AS(static_cast<void>(binding.value<1>(f.model.weight)), ShapeError);
  CHECK_THROWS_AS(static_cast<void>(binding.value<2>(f.model.mean)), ShapeError);
  CHECK(binding.value<0>(f.model.weight).data == f.values.data() + f.model.weight.offset);  // the address alone
}

TEST_CASE("a buffer is written where it is bound") {
  Fixture f;
  std::vector<float> buffers(static_cast<std::size_t>(f.layout.buffer_size()));
  nn::ParameterBinding<float, HostSpace> binding;
  binding.bind_buffers(buffers.data());
  binding.value<1>(f.model.mean)(2) = 5;
  CHECK(buffers[static_cast<std::size_t>(f.model.mean.offset) + 2] == 5);
}

TEST_CASE("16-bit values are there only if a copy is bound") {
  Fixture f;
  std::vector<bfloat16> half(f.values.size());
  nn::ParameterBinding<bfloat16, HostSpace> binding;
  binding.bind(f.values.data(), f.gradients.data(), f.layout.entries().size());
  CHECK(binding.half_precision_value(f.model.weight) == nullptr);
  binding.bind_half_precision_values(half.data());
  CHECK(binding.half_precision_value(f.model.weight) == half.data() + f.model.weight.offset);
}

TEST_CASE("a tensor that visit does not name is refused with its shape") {
  nn::ParameterBinding<float, HostSpace> const binding;
  nn::Parameter const unvisited{{4, 5}, {}};
  CHECK_THROWS_WITH_AS(
      static_cast<void>(binding.value<2>(unvisited)),
      "Context: forward uses a tensor of shape [4, 5] that the model's visit does not name; have visit "
      "call each(\"name\", layer_) for every layer",
      ConfigError);
}
