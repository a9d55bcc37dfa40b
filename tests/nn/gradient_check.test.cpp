// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/gradient_check.hpp>

#include <doctest/doctest.h>

#include <limits>

#include "toy.hpp"

using namespace lockstep;

namespace {
/// As toy::Model, with a gradient that is off by `error`.
struct Wrong {
  double error;
  nn::Parameter scale{{1}, {}};
  void visit(auto&& each) { each("scale", scale); }
  template <class Context>
  nn::Loss<typename Context::Space> forward(Context& context, toy::Batch const& batch) const {
    auto y = context.template variable<1>({1});
    y.value(0) = context.template value<1>(scale)(0) * batch.inputs[0];
    context.on_backward(y, std::tie(scale), [this, y, &batch](Context& c) {
      c.gradient(scale).data[0] = y.gradient()(0) * batch.inputs[0] + error;
    });
    return toy::squared_error(context, y, batch.targets);
  }
};
struct Empty {
  void visit(auto&&) {}
  nn::Loss<HostSpace> forward(auto&, toy::Batch const&) const { return {1, 1}; }
};
template <class Model>
nn::GradientCheckResult check(Model model) {
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()), 0.3);
  auto const before = values;
  auto const result = nn::check_gradients(model, layout, values, toy::Batch{{0.5, 2}, {1, -1}});
  CHECK(values == before);
  return result;
}
}  // namespace

TEST_CASE("a right gradient passes, and every parameter is looked at") {
  auto const result = check(toy::Model{});
  CHECK(result.ok());
  CHECK(result.checked == 4);
}

TEST_CASE("a gradient that is wrong in the fifth digit, or not a number, is found and named") {
  CHECK(check(Wrong{0}).ok());
  auto const off = check(Wrong{1e-5});
  CHECK_FALSE(off.ok());
  CHECK(off.where.find("scale[0]") == 0);
  CHECK_FALSE(check(Wrong{std::numeric_limits<double>::quiet_NaN()}).ok());
}

TEST_CASE("a model without parameters has nothing to check and does not pass") { CHECK_FALSE(check(Empty{}).ok()); }
