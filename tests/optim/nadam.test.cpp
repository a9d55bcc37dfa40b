// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/nadam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>

using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::NAdam;
using lockstep_test::Arena;
using lockstep_test::step;

// Here and not in the header, where it would take memory in each program.
static_assert(lockstep::optim::Optimizer<NAdam> && lockstep::optim::Optimizer<NAdam, double>);

namespace {
long double momentum(NAdam const& o, double t) {
  return o.beta1 * (1 - std::pow(0.96L, static_cast<long double>(t) * o.momentum_decay) / 2);
}
}  // namespace

TEST_CASE_TEMPLATE("NAdam follows its formula within the rounding of each operation", T, float, double) {
  ThreadPool pool(2);
  for (double t : {1., 2., 10., 1000.})
    for (auto const& o :
         {NAdam{}, NAdam{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.3}, NAdam{.momentum_decay = 1},
          NAdam{.weight_decay = 0.3, .kind = NAdam::WeightDecay::decoupled}}) {
      Arena<T> arena(500);
      auto const before = arena;
      step(o, pool, arena, 0, arena.count(), {.step = t, .learning_rate = 0.05, .weight = 24, .clip = 0.37});
      auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
      bool const coupled = o.kind == NAdam::WeightDecay::coupled;
      long double product = 1;
      for (double i = 1; i <= t; ++i) product *= momentum(o, i);
      auto const now = momentum(o, t), next = momentum(o, t + 1);
      auto const of_gradient = (1 - now) / (1 - product), of_moment = next / (1 - product * next);
      for (std::size_t i = 0; i < arena.values.size(); ++i) {
        long double const x = before.values[i], h = static_cast<long double>(before.gradients[i]) * 0.37L / 24,
                          penalty = coupled ? o.weight_decay * x : 0, g = h + penalty, m0 = before.states[0][i],
                          v0 = before.states[1][i], terms = std::abs(h) + std::abs(penalty);
        auto const m = m0 + (1 - static_cast<long double>(o.beta1)) * (g - m0);
        auto const keep = static_cast<long double>(o.beta2);
        auto const v = keep * v0 + (1 - keep) * g * g, largest = keep * v0 + (1 - keep) * terms * terms;
        auto const bias = 1 - std::pow(keep, static_cast<long double>(t));
        auto const denominator = std::sqrt(v / bias) + o.epsilon;
        // As for Adam: g errs by 3u G, m by 8u (|m0| + G), v by 11u V, the denominator by a relative 11u V / 2v + 4u.
        // The numerator adds 3u of either product and u for their sum, the quotient u, the rates 2u; the value and its
        // difference 3u of x. The constants are computed in double: powers, their products and differences from 1.
        auto const relative = 11 * u * largest / (2 * v) + 4 * u + 0x1p-53L * (4 / bias + 16);
        auto const numerator = of_gradient * terms + of_moment * (std::abs(m0) + terms);
        auto const expected =
            (coupled ? x : (1 - 0.05L * o.weight_decay) * x) - 0.05L * (of_gradient * g + of_moment * m) / denominator;
        CHECK(std::abs(arena.states[0][i] - m) <= 8 * u * (std::abs(m0) + terms));
        CHECK(std::abs(arena.states[1][i] - v) <= 11 * u * largest);
        CHECK(std::abs(arena.values[i] - expected) <=
              0.05L / denominator * numerator * (15 * u + relative) + 3 * u * std::abs(x));
      }
    }
}

TEST_CASE("the product of NAdam's factors equals the factors' product at any step") {
  for (double momentum_decay : {0., 4e-3, 0.05, 1., 30.})
    for (double beta1 : {0., 0.5, 0.9, 0.99, 0.9999}) {
      NAdam const o{.beta1 = beta1, .momentum_decay = momentum_decay};
      long double product = 1;
      double steps = 0;
      for (double t : {1., 2., 7., 100., 3000., 100000.}) {
        for (; steps < t; ++steps) product *= momentum(o, steps + 1);
        // Powers accumulate a rounding in each of at most a thousand factors; smaller products vanish against 1.
        CHECK(std::abs(lockstep::optim::detail::nadam_product(beta1, momentum_decay, t) - product) <=
              1e-11L * product + 1e-20L);
      }
    }
  CHECK(lockstep::optim::detail::nadam_product(0.9, 4e-3, 1e15) == 0);
}

TEST_CASE("NAdam's bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (Index count : {0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 16384, 16385, 50001}) {
    Arena<float> whole(count);
    step(NAdam{}, alone, whole, 0, count, {.step = 3, .learning_rate = 0.1, .weight = 3});
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Arena<float> parts(count);
      step(NAdam{}, pool, parts, 0, count / 3, {.step = 3, .learning_rate = 0.1, .weight = 3});
      step(NAdam{}, pool, parts, count / 3, count, {.step = 3, .learning_rate = 0.1, .weight = 3});
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("NAdam changes nothing at weight 0 and on skip, and keeps the arena's padding zero") {
  ThreadPool pool;
  Arena<float> arena(100);
  auto const before = arena;
  step(NAdam{}, pool, arena, 0, 100, {.learning_rate = 0.1, .weight = 0});
  step(NAdam{}, pool, arena, 0, 100, {.learning_rate = 0.1, .skip = true});
  CHECK(arena == before);
  std::vector<float> const zeros(100, 0);
  arena.values = arena.gradients = arena.states[0] = arena.states[1] = zeros;
  step(NAdam{}, pool, arena, 0, 100, {.learning_rate = 1});
  CHECK(arena.values == zeros);
}

TEST_CASE("moments of NAdam without a gradient shrink to zero without subnormal numbers") {
  ThreadPool pool;
  Arena<float> arena(200);
  std::fill(arena.gradients.begin(), arena.gradients.end(), 0.F);
  for (int t = 1; t < 1000; ++t) {
    step(NAdam{.beta2 = 0.9}, pool, arena, 0, 200, {.step = static_cast<double>(t), .learning_rate = 1e-3});
    for (auto const& state : arena.states)
      for (float e : state) REQUIRE(std::fpclassify(e) != FP_SUBNORMAL);
  }
  for (auto const& state : arena.states) CHECK(state == std::vector<float>(200, 0));
}

TEST_CASE("NAdam has PyTorch's defaults, and follows the settings of parameter groups") {
  CHECK(NAdam{}.learning_rate == 2e-3);
  CHECK(
      lockstep_test::described(NAdam{.epsilon = 0.5}) ==
      "beta1 = 0.900000 beta2 = 0.999000 epsilon = 0.500000 weight decay = 0.000000 momentum decay = 0.004000 kind of "
      "weight decay = 0.000000 untouched rows = 0.000000 ");
  CHECK(lockstep_test::heeds_groups(NAdam{}));
  CHECK(lockstep_test::heeds_groups(NAdam{.kind = NAdam::WeightDecay::decoupled}));
}

TEST_CASE("invalid settings of NAdam are refused by name") {
  CHECK_NOTHROW(NAdam{}.check());
  auto const refused = [](NAdam const& optimizer, char const* message) {
    CHECK_THROWS_WITH_AS(optimizer.check(), message, lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "NAdam: learning_rate is -1; it must be a finite number of at least 0");
  refused({.beta1 = 1}, "NAdam: beta1 is 1; it must be at least 0 and below 1");
  refused({.beta2 = -0.5}, "NAdam: beta2 is -0.5; it must be at least 0 and below 1");
  refused({.epsilon = -1}, "NAdam: epsilon is -1; it must be a finite number of at least 0");
  refused({.weight_decay = -1}, "NAdam: weight_decay is -1; it must be a finite number of at least 0");
  refused({.momentum_decay = -1}, "NAdam: momentum_decay is -1; it must be a finite number of at least 0");
}
