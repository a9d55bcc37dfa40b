// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/rmsprop.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>

using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::RMSprop;
using lockstep_test::Arena;
using lockstep_test::step;

// Here and not in the header, where it would take memory in each program.
static_assert(lockstep::optim::Optimizer<RMSprop> && lockstep::optim::Optimizer<RMSprop, double>);

TEST_CASE_TEMPLATE("RMSprop follows its formula within the rounding of each operation", T, float, double) {
  ThreadPool pool(2);
  for (auto const& optimizer : {RMSprop{}, RMSprop{.alpha = 0.5, .epsilon = 1e-3, .weight_decay = 0.3},
                                RMSprop{.momentum = 0.9}, RMSprop{.momentum = 0.5, .weight_decay = 0.1}}) {
    Arena<T> arena(1000);
    auto const before = arena;
    step(optimizer, pool, arena, 0, arena.count(), {.learning_rate = 0.05, .weight = 24, .clip = 0.37});
    auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
    for (std::size_t i = 0; i < arena.values.size(); ++i) {
      long double const x = before.values[i], h = static_cast<long double>(before.gradients[i]) * 0.37L / 24,
                        g = h + optimizer.weight_decay * x, v0 = before.states[1][i],
                        b0 = optimizer.momentum == 0 ? 0 : static_cast<long double>(before.states[0][i]);
      auto const keep = static_cast<long double>(optimizer.alpha);
      auto const v = keep * v0 + (1 - keep) * g * g;
      auto const denominator = std::sqrt(v) + optimizer.epsilon;
      auto const b = optimizer.momentum * b0 + g / denominator;
      // Each product of two rounded factors has at most 2u, so g errs by at most 3u of the absolute terms, G. Its
      // square errs by 6u G^2; its two products and the sum add 4u: below 10u of v with G for g, V. The root has half
      // of it and u, the sum with epsilon u more: below 7u of V / v. The quotient adds 3u of G and u, the momentum 2u,
      // the sum u.
      auto const terms = std::abs(h) + std::abs(optimizer.weight_decay * x);
      auto const largest = keep * v0 + (1 - keep) * terms * terms;
      CHECK(std::abs(arena.states[1][i] - v) <= 10 * u * largest);
      auto const moved = 3 * std::abs(optimizer.momentum * b0) + (5 + 7 * largest / v) * terms / denominator;
      if (optimizer.momentum != 0) CHECK(std::abs(arena.states[0][i] - b) <= u * moved);
      // The rate, its product and the difference add 3u.
      CHECK(std::abs(arena.values[i] - (x - 0.05L * b)) <= 2 * u * std::abs(x) + 0.05L * 4 * u * moved);
    }
    if (optimizer.momentum == 0) CHECK(arena.states[0] == before.states[0]);
    CHECK(arena.gradients == before.gradients);
  }
}

TEST_CASE("RMSprop's bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (double momentum : {0.0, 0.9})
    for (Index count : {0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 16384, 16385, 50001}) {
      Arena<float> whole(count);
      step(RMSprop{.momentum = momentum}, alone, whole, 0, count, {.learning_rate = 0.1, .weight = 3});
      for (int threads : {1, 2, 3}) {
        ThreadPool pool(threads);
        Arena<float> parts(count);
        step(RMSprop{.momentum = momentum}, pool, parts, 0, count / 3, {.learning_rate = 0.1, .weight = 3});
        step(RMSprop{.momentum = momentum}, pool, parts, count / 3, count, {.learning_rate = 0.1, .weight = 3});
        CHECK(parts == whole);
      }
    }
}

TEST_CASE("RMSprop changes nothing at weight 0 and on skip, and keeps the arena's padding zero") {
  ThreadPool pool;
  Arena<float> arena(100);
  auto const before = arena;
  step(RMSprop{.momentum = 0.9}, pool, arena, 0, 100, {.learning_rate = 0.1, .weight = 0});
  step(RMSprop{}, pool, arena, 0, 100, {.learning_rate = 0.1, .skip = true});
  CHECK(arena == before);
  std::vector<float> const zeros(100, 0);
  arena.values = arena.gradients = arena.states[0] = arena.states[1] = zeros;
  for (double momentum : {0.0, 0.9}) step(RMSprop{.momentum = momentum}, pool, arena, 0, 100, {.learning_rate = 1});
  CHECK(arena.values == zeros);
}

TEST_CASE("moments of RMSprop without a gradient shrink to zero without subnormal numbers") {
  ThreadPool pool;
  Arena<float> arena(200);
  std::fill(arena.gradients.begin(), arena.gradients.end(), 0.F);
  for (int t = 1; t < 1000; ++t) {
    step(RMSprop{.alpha = 0.9, .momentum = 0.9}, pool, arena, 0, 200, {.learning_rate = 1e-3});
    for (auto const& state : arena.states)
      for (float e : state) REQUIRE(std::fpclassify(e) != FP_SUBNORMAL);
  }
  for (auto const& state : arena.states) CHECK(state == std::vector<float>(200, 0));
}

TEST_CASE("RMSprop has PyTorch's defaults, and follows the settings of parameter groups") {
  CHECK(RMSprop{}.learning_rate == 1e-2);
  CHECK(lockstep_test::described(RMSprop{.epsilon = 0.5}) ==
        "alpha = 0.990000 epsilon = 0.500000 momentum = 0.000000 weight decay = 0.000000 untouched rows = 0.000000 ");
  for (double momentum : {0.0, 0.9}) CHECK(lockstep_test::heeds_groups(RMSprop{.momentum = momentum}));
}

TEST_CASE("invalid settings of RMSprop are refused by name") {
  CHECK_NOTHROW(RMSprop{}.check());
  auto const refused = [](RMSprop const& optimizer, char const* message) {
    CHECK_THROWS_WITH_AS(optimizer.check(), message, lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "RMSprop: learning_rate is -1; it must be a finite number of at least 0");
  refused({.alpha = 1}, "RMSprop: alpha is 1; it must be at least 0 and below 1");
  refused({.epsilon = -1}, "RMSprop: epsilon is -1; it must be a finite number of at least 0");
  refused({.momentum = 1}, "RMSprop: momentum is 1; it must be at least 0 and below 1");
  refused({.weight_decay = -1}, "RMSprop: weight_decay is -1; it must be a finite number of at least 0");
}
