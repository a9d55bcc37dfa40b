// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <doctest/doctest.h>

#include <lockstep/nn/elementwise/add.hpp>

#include "layer_check.hpp"

/// Properties of an elementwise function, apply(context, NoParameters, Sequence).
namespace activation_check {
using namespace layer_check;

struct NoParameters {
  void visit(auto&&) {}
};

template <class Apply>
void check_gradients(Apply const& apply) {
  /// x is used twice, so its gradient is a sum.
  auto const twice = [&](auto& context, NoParameters const& none, auto const& x) {
    return nn::add(context, x, apply(context, none, x));
  };
  for (Index rows : {0, 1, 7}) {
    Batch const batch{.rows = rows, .length = 5};
    for (auto const& result : {check(NoParameters{}, 33, batch, apply), check(NoParameters{}, 33, batch, twice)}) {
      CAPTURE(result.where);
      CHECK((result.ok() || rows == 0));
    }
  }
}

/// Training and evaluation give equal values, on any number of threads.
template <class Scalar, class Apply>
void check_bits(Apply const& apply) {
  Batch const batch{.rows = 50, .length = 7};
  auto const one = run<Scalar>(NoParameters{}, 33, batch, apply, 1);
  for (int threads : {1, 2, 4}) CHECK(run<Scalar>(NoParameters{}, 33, batch, apply, threads) == one);
  CHECK(evaluate<Scalar>(NoParameters{}, 33, batch, apply) == one.loss);
}

}  // namespace activation_check
