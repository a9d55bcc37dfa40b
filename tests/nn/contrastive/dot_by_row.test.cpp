// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/contrastive/dot_by_row.hpp>

#include <doctest/doctest.h>

#include "nn/activation_check.hpp"

namespace {
auto const with_itself = [](auto& context, auto const&, auto const& x) {
  return lockstep::nn::dot_by_row(context, x, lockstep::nn::add(context, x, x));
};
}  // namespace

TEST_CASE("dot_by_row: gradients of both sides") {
  auto const result = layer_check::check(activation_check::NoParameters{}, 33, {.rows = 7, .length = 5}, with_itself);
  CAPTURE(result.where);
  CHECK(result.ok());
}

TEST_CASE_TEMPLATE("dot_by_row: bits do not depend on threads, and evaluation gives equal values", T, float, double) {
  activation_check::check_bits<T>(with_itself);
}

TEST_CASE("dot_by_row: other shapes are refused") {
  lockstep::ThreadPool pool(1);
  lockstep::nn::Context<float, lockstep::HostSpace> context{lockstep::memory::Stream<lockstep::HostSpace>(pool)};
  lockstep::nn::Pass(context).begin_micro_batch(lockstep::nn::Mode::evaluation, 1);
  auto const a = context.variable<2>({2, 3}), b = context.variable<2>({3, 3});
  CHECK_THROWS_WITH_AS(static_cast<void>(lockstep::nn::dot_by_row(context, a, b)),
                       "dot_by_row: the sides are [2, 3] and [3, 3]; their shapes must be equal", lockstep::ShapeError);
}
