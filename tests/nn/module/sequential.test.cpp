// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/sequential.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>
#include <lockstep/nn/autograd/recompute.hpp>
#include <lockstep/nn/elementwise/gelu.hpp>
#include <lockstep/nn/linear/linear.hpp>
#include <lockstep/nn/normalization/layer_norm.hpp>
#include <lockstep/nn/random/dropout.hpp>
#include <lockstep/nn/random/stochastic_depth.hpp>
#include <lockstep/nn/transformer/residual.hpp>

#include "nn/layer_check.hpp"

using namespace lockstep;

namespace {

template <class Model>
std::vector<std::string> names(Model model) {
  std::vector<std::string> out;
  auto const layout = nn::ParameterLayout::of(model);  // outlives the loop
  for (auto const& entry : layout.entries()) out.push_back(entry.name);
  return out;
}
auto const gelu = [](auto& context, auto x) { return nn::gelu(context, x); };
auto const apply = [](auto& context, auto const& layer, auto const& x) { return layer.forward(context, x); };
auto const apply_to_rows = [](auto& context, auto const& layer, auto const& x) {
  return layer.forward(context, x.tokens);
};

/// The layers of the Sequential below, called by hand.
struct ByHand {
  nn::LayerNorm norm{6};
  nn::Linear first{6, 8}, second{8, 6};
  void visit(auto&& each) { each("0", norm), each("input", first), each("3", second); }
  auto forward(auto& context, auto const& x) const {
    return second.forward(context, gelu(context, first.forward(context, norm.forward(context, x))));
  }
};
auto sequential() {
  return nn::Sequential{nn::LayerNorm{6}, nn::Named{"input", nn::Linear{6, 8}}, gelu, nn::Linear{8, 6}};
}
layer_check::Batch const batch{.rows = 3, .length = 4, .lengths = {4, 0, 2}};

}  // namespace

TEST_CASE("Sequential: parameters are named by place, or by given names") {
  CHECK(names(sequential()) ==
        std::vector<std::string>{"0.weight", "0.bias", "input.weight", "input.bias", "3.weight", "3.bias"});
  CHECK(names(nn::Sequential{nn::Sequential{nn::Linear{1, 1}, gelu}, nn::Linear{1, 1}})[0] == "0.0.weight");
  CHECK(names(nn::Sequential{gelu}).empty());
}

TEST_CASE("Sequential: the result is bit-identical to its layers in sequence") {
  auto const one = layer_check::run<float>(sequential(), 6, batch, apply, 1);
  CHECK(one == layer_check::run<float>(ByHand{}, 6, batch, apply, 1));
  CHECK(one == layer_check::run<float>(sequential(), 6, batch, apply_to_rows, 2));
  CHECK(one.loss != 0);
}

TEST_CASE("Sequential: gradients, with dropout inside and without layers") {
  auto const result =
      layer_check::check(nn::Sequential{nn::Linear{6, 6}, nn::Dropout{0.3}, nn::LayerNorm{6}}, 6, batch, apply);
  CAPTURE(result.where);
  CHECK(result.ok());
  CHECK(layer_check::check(nn::Sequential<>{}, 6, batch, apply).ok());
}

TEST_CASE("Sequential: layers that take positions receive them, also within Residual and Recompute") {
  layer_check::Batch const vectors{.rows = 6, .length = 1};
  auto const with_positions = [](auto& context, auto const& layer, auto const& x) {
    return layer.forward(context, x.tokens, x.layout.positions);
  };
  auto const branch = [] { return nn::Sequential{nn::Linear{5, 5}, gelu, nn::Dropout{0.4}, nn::StochasticDepth{0.3}}; };
  auto const layers = [&](auto part) { return nn::Sequential{nn::Residual{part}, nn::Linear{5, 5}}; };
  auto const result = layer_check::check(layers(branch()), 5, vectors, with_positions);
  CAPTURE(result.where);
  CHECK(result.ok());
  // A Sequence holds its positions itself.
  auto const pass = layer_check::run<float>(layers(branch()), 5, vectors, apply, 1);
  CHECK(pass == layer_check::run<float>(layers(branch()), 5, vectors, with_positions, 1));
  CHECK(pass == layer_check::run<float>(layers(nn::Recompute{branch()}), 5, vectors, with_positions, 1));
  CHECK(!(pass == layer_check::run<float>(layers(nn::Sequential{nn::Linear{5, 5}, gelu}), 5, vectors, apply, 1)));
}
