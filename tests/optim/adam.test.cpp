// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adam.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>
#include <lockstep/optim/adamw.hpp>

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::Adam;
using lockstep_test::Arena;
using lockstep_test::step;
using Scalars = lockstep::optim::StepScalars<HostSpace>;

namespace {

template <class T>
void compare_with_formula(Adam const& o, Scalars const& s) {
  ThreadPool pool(2);
  Arena<T> arena(1000);
  auto const before = arena;
  step(o, pool, arena, 0, arena.count(), s);
  // u is the unit roundoff of T; bounds are of first order, rounded up for the rest. h = gradient * scale has 2u, decay
  // * x0 2u, and their sum u more: g errs by 3u G with G = |h| + |decay x0|.
  // m: 3u G, u for the difference, 2u for its factor and product, u for the sum: below 8u (|m0| + G)
  // v: g^2 errs by twice g's 3u G times |g|, so by 6u G^2, its factor, products and the sum 4u more: below 11u V with
  // V = beta2 v0 + (1 - beta2) G^2
  // denominator: v's error through the root, 11u V / (2 sqrt(v) sqrt(bias)), and 4u of the denominator
  // x: rate |m| / denominator has m's error, the denominator's and 3u, and the difference u of both terms
  auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
  long double const bias1 = 1 - std::pow(static_cast<long double>(o.beta1), s.step),
                    bias2 = 1 - std::pow(static_cast<long double>(o.beta2), s.step);
  for (std::size_t i = 0; i < arena.values.size(); ++i) {
    long double const x0 = before.values[i], h = before.gradients[i] * s.clip / s.weight,
                      g = h + static_cast<long double>(o.weight_decay) * x0,
                      size = std::abs(h) + std::abs(static_cast<long double>(o.weight_decay) * x0),
                      m0 = before.states[0][i], v0 = before.states[1][i];
    auto const m = m0 + (1 - static_cast<long double>(o.beta1)) * (g - m0);
    auto const v = o.beta2 * v0 + (1 - static_cast<long double>(o.beta2)) * g * g;
    auto const large_v = o.beta2 * v0 + (1 - static_cast<long double>(o.beta2)) * size * size;
    auto const root = std::sqrt(v / bias2), denominator = root + o.epsilon;
    auto const rate = s.learning_rate / bias1;
    auto const summed = std::abs(m0) + size, relative = 11 * u * large_v / (2 * v) + 4 * u;
    CHECK(std::abs(arena.states[0][i] - m) <= 8 * u * summed);
    CHECK(std::abs(arena.states[1][i] - v) <= 11 * u * large_v);
    CHECK(std::abs(arena.values[i] - (x0 - rate * m / denominator)) <=
          rate / denominator * (8 * u * summed + std::abs(m) * (relative + 5 * u)) + 2 * u * std::abs(x0));
  }
}

}  // namespace

TEST_CASE_TEMPLATE("Adam follows its formula within the rounding of each operation", T, float, double) {
  for (double t : {1., 2., 10., 1000., 1e6}) {
    CAPTURE(t);
    compare_with_formula<T>(Adam{}, {.step = t, .learning_rate = 1e-3});
    compare_with_formula<T>(Adam{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.3},
                            {.step = t, .learning_rate = 0.1, .weight = 24, .clip = 0.37});
  }
}

TEST_CASE("without weight decay Adam and AdamW give equal bits") {
  ThreadPool pool;
  Arena<float> adam(777), adamw(777);
  step(Adam{}, pool, adam, 0, 777, {.step = 3, .learning_rate = 0.1});
  step(lockstep::optim::AdamW{.weight_decay = 0}, pool, adamw, 0, 777, {.step = 3, .learning_rate = 0.1});
  CHECK(adam == adamw);
  Arena<float> coupled(777);
  step(Adam{.weight_decay = 0.1}, pool, coupled, 0, 777, {.step = 3, .learning_rate = 0.1});
  CHECK(coupled.states != adam.states);  // the decay changes the moments
}

TEST_CASE("Adam's bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (Index count : {0, 1, 31, 32, 33, 255, 256, 257, 16385}) {
    Arena<float> whole(count);
    step(Adam{.weight_decay = 0.1}, alone, whole, 0, count, {.learning_rate = 0.1, .weight = 3});
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Arena<float> parts(count);
      step(Adam{.weight_decay = 0.1}, pool, parts, 0, count / 3, {.learning_rate = 0.1, .weight = 3});
      step(Adam{.weight_decay = 0.1}, pool, parts, count / 3, count, {.learning_rate = 0.1, .weight = 3});
      CHECK(parts == whole);
    }
  }
}

TEST_CASE("Adam has PyTorch's defaults, without decay, and follows the settings of parameter groups") {
  CHECK(Adam{}.learning_rate == 1e-3);
  CHECK(lockstep_test::described(Adam{}) ==
        "beta1 = 0.900000 beta2 = 0.999000 epsilon = 0.000000 weight decay = 0.000000 untouched rows = 0.000000 ");
  CHECK(Adam{}.epsilon == 1e-8);
  CHECK(lockstep_test::heeds_groups(Adam{}));
}

TEST_CASE("invalid settings of Adam are refused by name") {
  CHECK_NOTHROW(Adam{}.check());
  CHECK_NOTHROW((Adam{.learning_rate = 0, .beta1 = 0, .beta2 = 0, .epsilon = 0}.check()));
  auto const refused = [](Adam const& adam, char const* message) {
    CHECK_THROWS_WITH_AS(adam.check(), message, lockstep::ConfigError);
  };
  refused({.learning_rate = -1}, "Adam: learning_rate is -1; it must be a finite number of at least 0");
  refused({.beta1 = 1}, "Adam: beta1 is 1; it must be at least 0 and below 1");
  refused({.beta2 = 1}, "Adam: beta2 is 1; it must be at least 0 and below 1");
  refused({.epsilon = std::numeric_limits<double>::infinity()},
          "Adam: epsilon is inf; it must be a finite number of at least 0");
  refused({.weight_decay = -2}, "Adam: weight_decay is -2; it must be a finite number of at least 0");
}
