// SPDX-License-Identifier: Apache-2.0
#include <lockstep/parallel/optimizer_state.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include <lockstep/optim/sgd.hpp>
#include <lockstep/parallel/replica.hpp>

#include "../nn/toy.hpp"

using namespace lockstep;

namespace {
/// The first parameter's value after one SGD step of rate 1 from 0, with gradient (3, 4, 0) of a sum of weight 2.
float stepped(double clip_norm, float third = 0, double weight = 2) {
  toy::Model model;
  auto const layout = nn::ParameterLayout::of(model);
  parallel::Replica<toy::Model> replica(model, layout, 1, parallel::gradient_arena(layout));
  auto* gradient = replica.gradient_data() + layout.entries()[0].offset;
  gradient[0] = 3, gradient[1] = 4, gradient[2] = third;
  parallel::OptimizerState<optim::SGD> state(layout);
  state.update(optim::SGD{.learning_rate = 1}, replica, {0, weight},
               {.step = 1, .learning_rate = 1, .clip_norm = clip_norm});
  return replica.values()[static_cast<std::size_t>(layout.entries()[0].offset)];
}
}  // namespace

TEST_CASE("the optimizer sees the gradient of the mean, clipped to the norm asked for") {
  CHECK(stepped(0) == -1.5f);      // 3 / 2; the mean's norm is 5 / 2
  CHECK(stepped(2.5) == -1.5f);    // just allowed
  CHECK(stepped(1.25) == -0.75f);  // halved
}

TEST_CASE("a step without weight, or with a gradient that is not finite while clipping, changes nothing") {
  CHECK(stepped(0, 0, 0) == 0);
  CHECK(stepped(1, std::numeric_limits<float>::infinity()) == 0);
  CHECK(stepped(1, std::numeric_limits<float>::quiet_NaN()) == 0);
}
