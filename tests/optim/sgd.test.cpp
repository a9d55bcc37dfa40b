// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/sgd.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>

using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::SGD;
using lockstep_test::Arena;
using lockstep_test::step;

TEST_CASE_TEMPLATE("SGD follows its formula within the rounding of each operation", T, float, double) {
  ThreadPool pool(2);
  for (auto const& optimizer :
       {SGD{}, SGD{.momentum = 0.9}, SGD{.momentum = 0.5, .weight_decay = 0.1}, SGD{.weight_decay = 0.3}}) {
    Arena<T> arena(1000);
    auto const before = arena;
    step(optimizer, pool, arena, 0, arena.count(), {.learning_rate = 0.05, .weight = 24, .clip = 0.37});
    auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
    for (std::size_t i = 0; i < arena.values.size(); ++i) {
      long double const x = before.values[i], g = static_cast<long double>(before.gradients[i]) * 0.37L / 24,
                        b0 = optimizer.momentum == 0 ? 0 : static_cast<long double>(before.states[0][i]);
      auto const b = optimizer.momentum * b0 + g + optimizer.weight_decay * x;
      // Each product of two rounded factors has at most 2u, each of the two sums u of the absolute terms: below 5u; the
      // step adds 2u by the rate and its product and u by the difference. 0.37 as a double is within 2^-53 of 0.37L.
      auto const terms = std::abs(optimizer.momentum * b0) + std::abs(g) + std::abs(optimizer.weight_decay * x);
      if (optimizer.momentum != 0) CHECK(std::abs(arena.states[0][i] - b) <= 5 * u * terms);
      CHECK(std::abs(arena.values[i] - (x - 0.05L * b)) <= 2 * u * std::abs(x) + 9 * u * 0.05L * terms);
    }
    if (optimizer.momentum == 0) CHECK(arena.states[0] == before.states[0]);
  }
}

TEST_CASE("SGD's bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (Index count : {0, 1, 31, 32, 33, 255, 256, 257, 16384, 16385, 50001}) {
    Arena<float> whole(count);
    step(SGD{.momentum = 0.9}, alone, whole, 0, count, {.learning_rate = 0.1, .weight = 3});
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Arena<float> parts(count);
      step(SGD{.momentum = 0.9}, pool, parts, 0, count / 3, {.learning_rate = 0.1, .weight = 3});
      step(SGD{.momentum = 0.9}, pool, parts, count / 3, count, {.learning_rate = 0.1, .weight = 3});
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("SGD changes nothing at weight 0 and on skip") {
  ThreadPool pool;
  Arena<float> arena(100);
  auto const before = arena;
  step(SGD{.momentum = 0.9}, pool, arena, 0, 100, {.learning_rate = 0.1, .weight = 0});
  step(SGD{}, pool, arena, 0, 100, {.learning_rate = 0.1, .skip = true});
  CHECK(arena == before);
}

TEST_CASE_TEMPLATE("Nesterov's momentum looks one step ahead", T, float, double) {
  ThreadPool pool(2);
  SGD const optimizer{.momentum = 0.9, .weight_decay = 0.1, .kind = SGD::Momentum::nesterov};
  Arena<T> arena(1000);
  auto const before = arena;
  for (auto& g : arena.gradients) g *= 16;
  step(optimizer, pool, arena, 0, arena.count(), {.learning_rate = 0.05, .weight = 8, .clip = 0.5});  // a sixteenth
  auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
  for (std::size_t i = 0; i < arena.values.size(); ++i) {
    long double const x = before.values[i], b0 = before.states[0][i],
                      g = before.gradients[i] + static_cast<long double>(optimizer.weight_decay) * x,
                      b = optimizer.momentum * b0 + g;
    // As above, b errs by 5u of its terms and g by less; the product with the momentum and the sum add 3u, the rate,
    // its product and the difference 3u more: below 12u of g's terms and b's.
    auto const terms = 2 * (std::abs(b0) + std::abs(static_cast<long double>(before.gradients[i])) + std::abs(x));
    CHECK(std::abs(arena.states[0][i] - b) <= 5 * u * terms);
    CHECK(std::abs(arena.values[i] - (x - 0.05L * (g + optimizer.momentum * b))) <=
          2 * u * std::abs(x) + 12 * u * 0.05L * terms);
  }
}

TEST_CASE("a momentum without a gradient shrinks to zero without subnormal numbers, which slow the processor down") {
  ThreadPool pool;
  for (auto kind : {SGD::Momentum::heavy_ball, SGD::Momentum::nesterov}) {
    Arena<float> arena(200);
    std::fill(arena.gradients.begin(), arena.gradients.end(), 0.F);
    for (int t = 1; t < 1000; ++t) {
      step(SGD{.momentum = 0.9, .kind = kind}, pool, arena, 0, 200, {.learning_rate = 1e-3});
      for (float b : arena.states[0]) REQUIRE(std::fpclassify(b) != FP_SUBNORMAL);
    }
    CHECK(arena.states[0] == std::vector<float>(200, 0));
  }
}

TEST_CASE("SGD has no momentum and decay by default, and follows the settings of parameter groups") {
  CHECK(SGD{}.learning_rate == 1e-3);
  CHECK(lockstep_test::described(SGD{}) ==
        "momentum = 0.000000 kind of momentum = 0.000000 weight decay = 0.000000 untouched rows = 0.000000 ");
  for (double momentum : {0.0, 0.9}) CHECK(lockstep_test::heeds_groups(SGD{.momentum = momentum}));
}

TEST_CASE("invalid settings of SGD are refused by name") {
  CHECK_NOTHROW(SGD{}.check());
  auto const refused = [](SGD const& sgd, char const* message) {
    CHECK_THROWS_WITH_AS(sgd.check(), message, lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "SGD: learning_rate is -1; it must be a finite number of at least 0");
  refused({.momentum = 1}, "SGD: momentum is 1; it must be at least 0 and below 1");
  refused({.weight_decay = -1}, "SGD: weight_decay is -1; it must be a finite number of at least 0");
}
