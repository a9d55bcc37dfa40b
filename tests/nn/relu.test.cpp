// SPDX-License-Identifier: Apache-2.0
#include <lockstep/nn/relu.hpp>

#include <doctest/doctest.h>

#include <lockstep/nn/add.hpp>

#include "layer_check.hpp"

using namespace layer_check;

namespace {
struct NoParameters {
  void visit(auto&&) {}
};
auto const apply = [](auto& context, NoParameters const&, auto const& x) { return nn::relu(context, x); };
/// x is used twice: its gradient is a sum.
auto const twice = [](auto& context, NoParameters const&, auto const& x) {
  return nn::add(context, x, nn::relu(context, x));
};
}  // namespace

TEST_CASE("gradient of the input") {
  for (Index rows : {0, 1, 7}) {
    Batch const batch{.rows = rows, .length = 5};
    for (auto const& result : {check(NoParameters{}, 33, batch, apply), check(NoParameters{}, 33, batch, twice)}) {
      CAPTURE(result.where);
      CHECK((result.ok() || rows == 0));
    }
  }
}

TEST_CASE("bits do not depend on threads, and evaluation computes the same") {
  Batch const batch{.rows = 50, .length = 7};
  auto const one = run<float>(NoParameters{}, 33, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<float>(NoParameters{}, 33, batch, apply, threads) == one);
  CHECK(evaluate<float>(NoParameters{}, 33, batch, apply) == one.loss);
}
