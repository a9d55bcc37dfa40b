// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/activation_layers.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/module/sequential.hpp>

#include "nn/layer_check.hpp"

using namespace lockstep;

namespace {

layer_check::Batch const batch{.rows = 2, .length = 3, .lengths = {3, 1}};
auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const apply_to_rows = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, x.tokens);
};

/// A Linear followed by an activation function.
template <class Function>
struct ByHand {
  Function function;
  nn::Linear first{4, 4};
  void visit(auto&& each) { each("0", first); }
  auto forward(auto& context, auto const& x) const { return function(context, first.forward(context, x)); }
};
template <class Function>
ByHand(Function) -> ByHand<Function>;

template <class Layer, class Function>
void check(Layer const& layer, Function const& function) {
  nn::Sequential const layers{nn::Linear{4, 4}, layer};
  auto const sequence = layer_check::run<float>(layers, 4, batch, apply, 1);
  CHECK(sequence == layer_check::run<float>(ByHand{function}, 4, batch, apply, 1));
  CHECK(sequence == layer_check::run<float>(layers, 4, batch, apply_to_rows, 1));
  CHECK(sequence.loss != 0);
}

}  // namespace

TEST_CASE("an activation layer computes its function") {
  check(nn::ReLU{}, [](auto& context, auto const& x) { return nn::relu(context, x); });
  check(nn::LeakyReLU{0.25}, [](auto& context, auto const& x) { return nn::leaky_relu(context, x, 0.25); });
  check(nn::GELU{}, [](auto& context, auto const& x) { return nn::gelu(context, x); });
  check(nn::SiLU{}, [](auto& context, auto const& x) { return nn::silu(context, x); });
  check(nn::Sigmoid{}, [](auto& context, auto const& x) { return nn::sigmoid(context, x); });
  check(nn::Tanh{}, [](auto& context, auto const& x) { return nn::tanh(context, x); });
  check(nn::GELUTanh{}, [](auto& context, auto const& x) { return nn::gelu_tanh(context, x); });
  check(nn::ELU{0.5}, [](auto& context, auto const& x) { return nn::elu(context, x, 0.5); });
  check(nn::Softplus{2}, [](auto& context, auto const& x) { return nn::softplus(context, x, 2); });
  check(nn::Mish{}, [](auto& context, auto const& x) { return nn::mish(context, x); });
  check(nn::ReLU6{}, [](auto& context, auto const& x) { return nn::relu6(context, x); });
  check(nn::Hardsigmoid{}, [](auto& context, auto const& x) { return nn::hardsigmoid(context, x); });
  check(nn::Hardswish{}, [](auto& context, auto const& x) { return nn::hardswish(context, x); });
}

TEST_CASE("an activation layer has no parameters, and counts among the layers of a Sequential") {
  nn::Sequential model{nn::Linear{2, 2}, nn::ReLU{}, nn::Linear{2, 1}};
  auto const layout = nn::ParameterLayout::of(model);
  REQUIRE(layout.entries().size() == 4);
  CHECK(layout.entries()[2].name == "2.weight");
}
