// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adagrad.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>

using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::Adagrad;
using lockstep_test::Arena;
using lockstep_test::step;

// Here and not in the header, where it would take memory in each program.
static_assert(lockstep::optim::Optimizer<Adagrad> && lockstep::optim::Optimizer<Adagrad, double>);

namespace {
/// An arena whose state is not negative, as Adagrad's.
template <class T>
Arena<T> arena_of(Index count) {
  Arena<T> arena(count);
  arena.states[0] = arena.states[1];
  return arena;
}
}  // namespace

TEST_CASE_TEMPLATE("Adagrad follows its formula within the rounding of each operation", T, float, double) {
  ThreadPool pool(2);
  for (auto const& optimizer : {Adagrad{}, Adagrad{.learning_rate_decay = 0.3, .epsilon = 1e-3},
                                Adagrad{.initial_accumulator_value = 0.5, .weight_decay = 0.3}}) {
    auto arena = arena_of<T>(1000);
    auto const before = arena;
    step(optimizer, pool, arena, 0, arena.count(), {.step = 4, .learning_rate = 0.05, .weight = 24, .clip = 0.37});
    auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
    for (std::size_t i = 0; i < arena.values.size(); ++i) {
      long double const x = before.values[i], h = static_cast<long double>(before.gradients[i]) * 0.37L / 24,
                        g = h + optimizer.weight_decay * x, v0 = before.states[0][i];
      auto const v = v0 + g * g;
      auto const denominator = std::sqrt(v + optimizer.initial_accumulator_value) + optimizer.epsilon;
      auto const rate = 0.05L / (1 + 3 * static_cast<long double>(optimizer.learning_rate_decay));
      // Each product of two rounded factors has at most 2u, so g errs by at most 3u of the absolute terms, G. Its
      // square errs by 6u G^2, the product and the sums with v and the initial value by 3u: below 9u of V, which is v
      // with G for g. The root has half of it and u, the sum with epsilon u more: below 7u of V / v. The quotient adds
      // 3u of G and u, the rate, its product and the difference 3u.
      auto const terms = std::abs(h) + std::abs(optimizer.weight_decay * x), largest = v0 + terms * terms;
      CHECK(std::abs(arena.states[0][i] - v) <= 9 * u * largest);
      CHECK(std::abs(arena.values[i] - (x - rate * g / denominator)) <=
            2 * u * std::abs(x) + rate * u * (7 + 7 * largest / v) * terms / denominator);
    }
    CHECK(arena.states[1] == before.states[1]);
    CHECK(arena.gradients == before.gradients);
  }
}

TEST_CASE("Adagrad's bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (Index count : {0, 1, 31, 32, 33, 63, 64, 65, 255, 256, 257, 16384, 16385, 50001}) {
    auto whole = arena_of<float>(count);
    step(Adagrad{}, alone, whole, 0, count, {.learning_rate = 0.1, .weight = 3});
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      auto parts = arena_of<float>(count);
      step(Adagrad{}, pool, parts, 0, count / 3, {.learning_rate = 0.1, .weight = 3});
      step(Adagrad{}, pool, parts, count / 3, count, {.learning_rate = 0.1, .weight = 3});
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("Adagrad changes nothing at weight 0, on skip and for a gradient of zero, and keeps padding zero") {
  ThreadPool pool;
  auto arena = arena_of<float>(100);
  auto const before = arena;
  step(Adagrad{}, pool, arena, 0, 100, {.learning_rate = 0.1, .weight = 0});
  step(Adagrad{}, pool, arena, 0, 100, {.learning_rate = 0.1, .skip = true});
  CHECK(arena == before);
  std::vector<float> const zeros(100, 0);
  arena.gradients = zeros;
  step(Adagrad{}, pool, arena, 0, 100, {.learning_rate = 1});
  CHECK(arena.values == before.values);
  CHECK(arena.states == before.states);
  arena.values = arena.states[0] = zeros;
  step(Adagrad{}, pool, arena, 0, 100, {.learning_rate = 1});
  CHECK(arena.values == zeros);
}

TEST_CASE("Adagrad has PyTorch's defaults, and follows the settings of parameter groups") {
  CHECK(Adagrad{}.learning_rate == 1e-2);
  CHECK(Adagrad{}.epsilon == 1e-10);
  CHECK(
      lockstep_test::described(Adagrad{.learning_rate_decay = 2, .epsilon = 0.5}) ==
      "learning rate decay = 2.000000 initial accumulator value = 0.000000 epsilon = 0.500000 weight decay = 0.000000 "
      "untouched rows = 0.000000 ");
  CHECK(lockstep_test::heeds_groups(Adagrad{.initial_accumulator_value = 0.2}));
}

TEST_CASE("invalid settings of Adagrad are refused by name") {
  CHECK_NOTHROW(Adagrad{}.check());
  auto const refused = [](Adagrad const& optimizer, char const* name) {
    CHECK_THROWS_WITH_AS(optimizer.check(), doctest::Contains(name), lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "Adagrad: learning_rate is -1; it must be a finite number of at least 0");
  refused({.learning_rate_decay = -1}, "Adagrad: learning_rate_decay is -1");
  refused({.initial_accumulator_value = std::nan("")}, "Adagrad: initial_accumulator_value is nan");
  refused({.epsilon = -1}, "Adagrad: epsilon is -1");
  refused({.weight_decay = -1}, "Adagrad: weight_decay is -1");
}
