// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/lamb.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>
#include <optim/arena.hpp>

#include <lockstep/core/bfloat16.hpp>

using lockstep::bfloat16;
using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::LAMB;
using lockstep_test::Arena;
using lockstep_test::step;

// Here and not in the header, where it would take memory in each program.
static_assert(lockstep::optim::Optimizer<LAMB> && lockstep::optim::Optimizer<LAMB, double>);
static_assert(lockstep::optim::steps_whole_parameters<LAMB>());

TEST_CASE_TEMPLATE("LAMB follows its formula within the rounding of each operation", T, float, double) {
  ThreadPool pool(2);
  for (double t : {1., 2., 10., 1000.})
    for (auto const& o : {LAMB{}, LAMB{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.3}}) {
      Arena<T> arena(1000);
      auto const before = arena;
      step(o, pool, arena, 0, arena.count(), {.step = t, .learning_rate = 0.05, .weight = 24, .clip = 0.37});
      auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
      auto const keep1 = static_cast<long double>(o.beta1), keep2 = static_cast<long double>(o.beta2);
      auto const bias1 = 1 - std::pow(keep1, static_cast<long double>(t)),
                 bias2 = 1 - std::pow(keep2, static_cast<long double>(t));
      std::vector<long double> update(arena.values.size()), error(update.size());
      long double values = 0, updates = 0, errors = 0;
      for (std::size_t i = 0; i < update.size(); ++i) {
        long double const x = before.values[i], g = static_cast<long double>(before.gradients[i]) * 0.37L / 24,
                          m0 = before.states[0][i], v0 = before.states[1][i];
        auto const m = m0 + (1 - keep1) * (g - m0), v = keep2 * v0 + (1 - keep2) * g * g;
        auto const denominator = std::sqrt(v / bias2) + o.epsilon;
        update[i] = m / bias1 / denominator + o.weight_decay * x;
        // g errs by 2u, m by 7u (|m0| + |g|) and v by 9u. The denominator has half of v's error and 4u; quotient,
        // products and the sum with the decay add 5u of either. Constants are computed in double.
        auto const constants = 0x1p-53L * (2 / bias1 + 2 / bias2 + 8);
        error[i] = ((7 * u + constants) * (std::abs(m0) + std::abs(g)) + (14 * u + constants) * std::abs(m)) / bias1 /
                       denominator +
                   5 * u * std::abs(update[i]) + 3 * u * std::abs(static_cast<long double>(o.weight_decay) * x);
        CHECK(std::abs(arena.states[0][i] - m) <= 7 * u * (std::abs(m0) + std::abs(g)));
        CHECK(std::abs(arena.states[1][i] - v) <= 9 * u * v);
        values += x * x, updates += update[i] * update[i], errors += error[i] * error[i];
      }
      auto const ratio = std::sqrt(values / updates);
      // The norm of the update errs by at most the norm of the errors; rate, ratio and product add 4u.
      auto const of_ratio = std::sqrt(errors / updates) + 4 * u + 0x1p-40L;
      for (std::size_t i = 0; i < update.size(); ++i)
        CHECK(std::abs(arena.values[i] - (before.values[i] - 0.05L * ratio * update[i])) <=
              0.05L * ratio * (error[i] + of_ratio * std::abs(update[i])) + u * std::abs(before.values[i]));
      CHECK(arena.gradients == before.gradients);
    }
}

TEST_CASE("LAMB's bits do not depend on threads, and a parameter of any size is stepped whole") {
  ThreadPool alone;
  for (Index count : {0, 1, 7, 8, 9, 31, 32, 33, 255, 256, 257, 4095, 4096, 4097, 50001, 1100000}) {
    Arena<float> one(count);
    step(LAMB{}, alone, one, 0, count, {.step = 3, .learning_rate = 0.1, .weight = 3});
    for (int threads : {2, 3}) {
      ThreadPool pool(threads);
      Arena<float> other(count);
      step(LAMB{}, pool, other, 0, count, {.step = 3, .learning_rate = 0.1, .weight = 3});
      CHECK(other == one);
    }
    double of_values = 0, moved = 0;
    Arena<float> const before(count);
    for (std::size_t i = 0; i < before.values.size(); ++i) {
      double const x = static_cast<double>(before.values[i]), y = static_cast<double>(one.values[i]);
      of_values += x * x, moved += (y - x) * (y - x);
    }
    CHECK(std::sqrt(moved) == doctest::Approx(0.1 * std::sqrt(of_values)).epsilon(1e-5));
  }
}

TEST_CASE("LAMB takes the plain step for a parameter or an update of zero") {
  ThreadPool pool;
  Arena<float> arena(100);
  auto const gradients = arena.gradients;
  std::vector<float> const zeros(100, 0);
  arena.values = arena.gradients = arena.states[0] = arena.states[1] = zeros;
  step(LAMB{}, pool, arena, 0, 100, {.learning_rate = 1});
  CHECK(arena.values == zeros);  // neither has a norm; padding stays zero
  arena.gradients = gradients;
  step(LAMB{}, pool, arena, 0, 100, {.learning_rate = 0.5});
  for (std::size_t i = 0; i < 100; ++i)  // of the first step: the sign of the gradient
    CHECK(arena.values[i] == doctest::Approx(gradients[i] > 0 ? -0.5 : 0.5).epsilon(1e-4));
  auto const before = arena;
  arena.gradients = arena.states[0] = zeros;
  step(LAMB{.weight_decay = 0}, pool, arena, 0, 100, {.step = 2, .learning_rate = 1});
  CHECK(arena.values == before.values);
}

TEST_CASE("LAMB changes nothing at weight 0 and on skip, and writes the copy of 16 bits") {
  ThreadPool pool;
  Arena<float> arena(300);
  auto const before = arena;
  step(LAMB{}, pool, arena, 0, 300, {.learning_rate = 0.1, .weight = 0});
  step(LAMB{}, pool, arena, 0, 300, {.learning_rate = 0.1, .skip = true});
  CHECK(arena == before);
  std::vector<bfloat16> copy(300);
  float* const states[] = {arena.states[0].data(), arena.states[1].data()};
  lockstep::optim::Slice<float, HostSpace> slice{0, 300, arena.values.data(), arena.gradients.data(), states};
  slice.half_precision = copy.data();
  lockstep::optim::StepScalars<HostSpace> const scalars{.learning_rate = 0.1};
  LAMB{}.step(lockstep::memory::Stream<HostSpace>(pool), slice, &scalars);
  for (std::size_t i = 0; i < 300; ++i) CHECK(copy[i].bits == bfloat16(arena.values[i]).bits);
}

TEST_CASE("LAMB follows the settings of parameter groups, and describes its settings") {
  CHECK(lockstep_test::described(LAMB{.epsilon = 0.5}) ==
        "beta1 = 0.900000 beta2 = 0.999000 epsilon = 0.500000 weight decay = 0.010000 ");
  CHECK(lockstep_test::heeds_groups(LAMB{}));
}

TEST_CASE("invalid settings of LAMB are refused by name") {
  CHECK_NOTHROW(LAMB{}.check());
  auto const refused = [](LAMB const& optimizer, char const* message) {
    CHECK_THROWS_WITH_AS(optimizer.check(), message, lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "LAMB: learning_rate is -1; it must be a finite number of at least 0");
  refused({.beta1 = 1}, "LAMB: beta1 is 1; it must be at least 0 and below 1");
  refused({.beta2 = -0.5}, "LAMB: beta2 is -0.5; it must be at least 0 and below 1");
  refused({.epsilon = -1}, "LAMB: epsilon is -1; it must be a finite number of at least 0");
  refused({.weight_decay = -1}, "LAMB: weight_decay is -1; it must be a finite number of at least 0");
}
