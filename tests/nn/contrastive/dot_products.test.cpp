// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/dot_products.hpp>

#include <doctest/doctest.h>

#include <array>
#include <vector>

#include <lockstep/core/bfloat16.hpp>
#include <lockstep/nn/loss/mean_squared_error.hpp>
#include <lockstep/nn/normalization/l2_normalize.hpp>

#include "nn/sequence_model.hpp"

using namespace lockstep;
using lockstep_test::irregular_loss;
using lockstep_test::learned;
using lockstep_test::Trial;

namespace {

/// Learned factors: a with b, a with itself, and a with an input.
struct Products {
  nn::Parameter a, b;
  explicit Products(Index rows, Index others)
      : a{{rows, 5}, nn::Initializer::normal(1)}, b{{others, 5}, nn::Initializer::normal(1)} {}
  void visit(auto&& each) { each("a", a), each("b", b); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, std::vector<float> const& input) const {
    auto const x = learned(context, a), y = nn::l2_normalize(context, learned(context, b));
    auto loss = irregular_loss(context, nn::dot_products(context, x, y, 0.5));
    loss += irregular_loss(context, nn::dot_products(context, x, x));
    auto const given = context.input(TensorView<float const, 2, HostSpace>{input.data(), {3, 5}});
    loss += irregular_loss(context, nn::dot_products(context, given, x, -2));
    return loss;
  }
};
/// Products of small integers.
struct Small {
  static constexpr std::array<float, 12> whole{1, -2, 0, 3, 1, 1, 0, 2, -1, 1, 1, 1};
  nn::Parameter a{{4, 3}, nn::Initializer::given(whole.data())}, b{{2, 3}, nn::Initializer::given(whole.data() + 3)};
  void visit(auto&& each) { each("a", a), each("b", b); }
  template <class Context>
  nn::Loss<HostSpace> forward(Context& context, std::vector<float> const& targets) const {
    auto const y = nn::dot_products(context, learned(context, a), learned(context, b), 2);
    return nn::mean_squared_error(context, y, TensorView<float const, 2, HostSpace>{targets.data(), {4, 2}});
  }
};
std::vector<float> const input{1, -2, 0.5f, 0, 3, 0, 0, 1, 1, -1, 2, 2, -0.25f, 4, 1};

}  // namespace

TEST_CASE("dot_products: gradients, also if a is b, and if one is an input") {
  for (auto [rows, others] : {std::array<Index, 2>{1, 1}, {4, 3}, {33, 31}}) {
    auto const result = lockstep_test::check_model(Products(rows, others), input);
    CAPTURE(result.where);
    CHECK(result.ok());
  }
}

TEST_CASE("dot_products: each row with each row, and without rows") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  std::vector<float> const a{1, 2, 3, 4}, b{1, 0, 0, 1, 1, 1};
  auto const in = [&](std::vector<float> const& of, Index rows) {
    return context.input(TensorView<float const, 2, HostSpace>{of.data(), {rows, 2}});
  };
  auto const y = nn::dot_products(context, in(a, 2), in(b, 3), 10);
  CHECK(y.value.extent == Extents<2>{2, 3});
  CHECK(std::vector<float>(y.value.data, y.value.data + 6) == std::vector<float>{10, 20, 30, 30, 40, 70});
  CHECK(nn::dot_products(context, in(a, 0), in(b, 3)).value.extent == Extents<2>{0, 3});
}

TEST_CASE("dot_products: if one side has no rows, the other's gradient is zero") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::training, 1);
  auto const a = context.variable<2>({0, 2}), b = context.variable<2>({3, 2});
  auto const y = nn::dot_products(context, a, b);
  static_cast<void>(irregular_loss(context, y));
  nn::Pass(context).backward({});
  REQUIRE(b.slot->data);
  CHECK(std::vector<float>(b.slot->data, b.slot->data + 6) == std::vector<float>(6));
}

TEST_CASE_TEMPLATE("dot_products: bits do not depend on threads", T, float, double) {
  Trial<Products, T> one(Products(70, 90), 1);
  auto const loss = one.step(input).sum;
  for (int threads : {2, 3, 4}) {
    Trial<Products, T> trial(Products(70, 90), threads);
    CHECK(trial.step(input).sum == loss);
    CHECK(trial.gradients == one.gradients);
  }
}

TEST_CASE("dot_products: 16 bits give equal values without rounding") {
  std::vector<float> const targets{1, 0, 2, -1, 3, 1, 0, 4};
  Trial<Small, float> exact{Small{}};
  Trial<Small, bfloat16> low{Small{}};
  CHECK(exact.step(targets).sum == low.step(targets).sum);
  CHECK(exact.gradients == low.gradients);
  CHECK(exact.gradients[0] != 0);
}

TEST_CASE("dot_products: rows of another width are refused") {
  ThreadPool pool(1);
  nn::Context<float, HostSpace> context{memory::Stream<HostSpace>(pool)};
  nn::Pass(context).begin_micro_batch(nn::Mode::evaluation, 1);
  auto const a = context.variable<2>({2, 3}), b = context.variable<2>({2, 4});
  CHECK_THROWS_WITH_AS(static_cast<void>(nn::dot_products(context, a, b)),
                       "dot_products: a is [2, 3] and b [2, 4]; their rows must be equally long", ShapeError);
}
