// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/module/gradient_check.hpp>

#include <doctest/doctest.h>

#include <array>
#include <limits>
#include <numeric>
#include <string>

#include "nn/toy.hpp"

using namespace lockstep;

namespace {
/// As toy::Model, with a gradient that has an error of `error`.
struct Wrong {
  double error;
  nn::Parameter scale{{1}, {}};
  void visit(auto&& each) { each("scale", scale); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const& batch) const {
    auto y = context.template variable<1>({1});
    y.value(0) = context.template value<1>(scale)(0) * batch.inputs[0];
    context.on_backward(y, std::tie(scale), [this, y, &batch](Context& c) {
      c.gradient(scale).data[0] = y.gradient()(0) * batch.inputs[0] + error;
    });
    return toy::squared_error(context, y, batch.targets);
  }
};
/// sum of 1000 (i + 1) p[i] over both parameters; the gradient has an error of `error` at `at`, and a smaller one
/// elsewhere.
struct Linear {
  double error;
  std::size_t at;
  nn::Parameter first{{6}, {}}, second{{6}, {}};
  void visit(auto&& each) { each("first", first), each("second", second); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const&) const {
    auto const y = context.template variable<1>({1});
    double sum = 0;
    for (std::size_t i = 0; i < 12; ++i)
      sum += weight(i) * context.template value<1>(i < 6 ? first : second).data[i % 6];
    static_cast<void>(context.gradient(y));
    context.on_backward(y, std::tie(first, second), [this](Context& c) {
      auto const d = std::array{c.gradient(first).data, c.gradient(second).data};
      for (std::size_t i = 0; i < 12; ++i) d[i / 6][i % 6] = weight(i) + (i == at ? error : 1e-3 * error);
    });
    return {sum, 1};
  }
  static double weight(std::size_t i) { return 1000 * static_cast<double>(i + 1); }
};
/// 1e-7 p, with a gradient three times too large.
struct Small {
  nn::Parameter p{{1}, {}};
  void visit(auto&& each) { each("p", p); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const&) const {
    auto const y = context.template variable<1>({1});
    static_cast<void>(context.gradient(y));
    context.on_backward(y, std::tie(p), [this](Context& c) { c.gradient(p).data[0] = 3e-7; });
    return {1e-7 * context.template value<1>(p)(0), 1};
  }
};
/// The sum of a matrix's elements, with one column missing in the gradient.
struct Matrix {
  explicit Matrix(Index width, Index left_out) : column(left_out), p{{width, width}, {}} {}
  void visit(auto&& each) { each("p", p); }
  template <class Context>
  nn::LossOf<Context> forward(Context& context, toy::Batch const&) const {
    auto const value = context.template value<2>(p);
    auto const y = context.template variable<1>({1});
    static_cast<void>(context.gradient(y));
    context.on_backward(y, std::tie(p), [this, value](Context& c) {
      auto const to = c.gradient(p).data;
      for (Index i = 0; i < value.size(); ++i) to[i] = i % value.extent[1] == column ? 0 : 1;
    });
    return {std::accumulate(value.data, value.data + value.size(), 0.0), 1};
  }
  Index column;
  nn::Parameter p;
};
struct Empty {
  void visit(auto&&) {}
  nn::Loss<HostSpace> forward(auto&, toy::Batch const&) const { return {1, 1}; }
};
template <class Model>
nn::GradientCheckResult check(Model model, nn::GradientCheckOptions const& options = {}) {
  auto const layout = nn::ParameterLayout::of(model);
  std::vector<double> values(static_cast<std::size_t>(layout.size()), 0.3);
  auto const before = values;
  auto const result = nn::check_gradients(model, layout, values, toy::Batch{{0.5, 2}, {1, -1}}, options);
  CHECK(values == before);
  return result;
}
}  // namespace

TEST_CASE("a correct gradient passes, and every parameter is checked") {
  auto const result = check(toy::Model{});
  CHECK(result.ok());
  CHECK(result.checked == 4);
}

TEST_CASE("a gradient with an error in the fifth digit, or NaN, is found and named") {
  CHECK(check(Wrong{0}).ok());
  auto const off = check(Wrong{1e-5});
  CHECK_FALSE(off.ok());
  CHECK(off.where.find("scale[0]") == 0);
  CHECK_FALSE(check(Wrong{std::numeric_limits<double>::quiet_NaN()}).ok());
}

TEST_CASE("small gradients are reported with their digits") {
  CHECK(check(Small{}).where == "p[0]: numeric 1e-07, analytic 3e-07");
}

TEST_CASE("the worst of all elements is named, and an error is relative to the gradient's size") {
  for (std::size_t at : {2u, 4u, 9u}) {
    CHECK(check(Linear{5e-7 * Linear::weight(at), at}).ok());
    auto const off = check(Linear{2e-6 * Linear::weight(at), at});
    // the difference itself has an error of 2^-53 1e5 / 1e-5 = 1e-6
    CHECK(off.worst == doctest::Approx(2).epsilon(0.01));
    CHECK(off.where.starts_with((at < 6 ? "first[" : "second[") + std::to_string(at % 6) + "]"));
  }
}

TEST_CASE("the requested number of elements is checked, over all rows and columns") {
  auto const some = check(Linear{1, 3}, {.max_per_parameter = 3});  // 0, 5 and 4 of each
  CHECK(some.checked == 6);
  CHECK(some.worst < 1.1);
  CHECK(check(Linear{1, 4}, {.max_per_parameter = 3}).worst > 100);
  for (Index width : {16, 64, 100})
    for (Index column : {Index{1}, width / 2, width - 1}) {
      CAPTURE(width);
      CAPTURE(column);
      CHECK(check(Matrix{width, -1}).ok());
      auto const off = check(Matrix{width, column}, {.max_per_parameter = width});
      CHECK(off.checked == width);
      CHECK_FALSE(off.ok());
    }
}

TEST_CASE("a model without parameters has nothing to check and does not pass") { CHECK_FALSE(check(Empty{}).ok()); }
