// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/autograd/detach.hpp>

#include <doctest/doctest.h>

#include <vector>

#include <lockstep/nn/elementwise/multiply.hpp>
#include <lockstep/nn/linear/linear.hpp>

#include "nn/layer_check.hpp"

using namespace layer_check;

namespace {
struct NoParameters {
  void visit(auto&&) {}
};
auto const half_of_square = [](auto& context, NoParameters const&, auto const& x) {
  return nn::multiply(context, x, nn::detach(x));
};
auto const of_tokens = [](auto& context, NoParameters const&, auto const& x) {
  return x.with(nn::multiply(context, x.tokens, nn::detach(x.tokens)));
};
auto const square = [](auto& context, NoParameters const&, auto const& x) { return nn::multiply(context, x, x); };
/// The layer's own outputs are a gate through which it gets no gradient.
auto const gated = [](auto& context, nn::Linear const& layer, auto const& x) {
  return nn::multiply(context, x, nn::detach(layer.forward(context, x)));
};
}  // namespace

TEST_CASE_TEMPLATE("a detached factor is a constant, for sequences and variables", T, float, double) {
  Batch const batch{.rows = 3, .length = 4};
  auto const half = run<T>(NoParameters{}, 8, batch, half_of_square, 1);
  auto const both = run<T>(NoParameters{}, 8, batch, square, 1);
  CHECK(half.loss == both.loss);
  CHECK(both.gradients != std::vector<T>(both.gradients.size()));
  for (std::size_t i = 0; i < half.gradients.size(); ++i) CHECK(2 * half.gradients[i] == both.gradients[i]);
  CHECK(run<T>(NoParameters{}, 8, batch, of_tokens, 1) == half);
}

TEST_CASE("only the producer of a detached value gets no gradient") {
  auto const pass = run<double>(nn::Linear(5, 5, nn::Bias::none), 5, {.rows = 4}, gated, 1);
  auto const zero = [&](std::size_t first, std::size_t end) {
    return std::vector<double>(pass.gradients.begin() + static_cast<std::ptrdiff_t>(first),
                               pass.gradients.begin() + static_cast<std::ptrdiff_t>(end)) ==
           std::vector<double>(end - first);
  };
  CHECK(zero(0, 25));         // the layer: the last one visited comes first
  CHECK_FALSE(zero(32, 52));  // the input
}
