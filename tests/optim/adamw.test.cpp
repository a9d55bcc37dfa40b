// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/adamw.hpp>

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <limits>
#include <optim/arena.hpp>

using lockstep::HostSpace;
using lockstep::Index;
using lockstep::ThreadPool;
using lockstep::optim::AdamW;
using lockstep_test::Arena;
using lockstep_test::step;
using Scalars = lockstep::optim::StepScalars<HostSpace>;

namespace {

/// One step of one element by the formula, in long double, with the sum of the terms' magnitudes.
struct Reference {
  long double m, v, x, summed_m, moved;

  Reference(AdamW const& o, Scalars const& s, long double x0, long double gradient, long double m0, long double v0) {
    auto const g = gradient * s.clip / s.weight;
    m = m0 + (1 - static_cast<long double>(o.beta1)) * (g - m0);
    v = o.beta2 * v0 + (1 - static_cast<long double>(o.beta2)) * g * g;
    auto const rate = s.learning_rate / (1 - std::pow(static_cast<long double>(o.beta1), s.step));
    auto const denominator = std::sqrt(v / (1 - std::pow(static_cast<long double>(o.beta2), s.step))) + o.epsilon;
    x = (1 - static_cast<long double>(s.learning_rate) * o.weight_decay) * x0 - rate * m / denominator;
    summed_m = std::abs(m0) + std::abs(g);
    moved = rate * summed_m / denominator;
  }
};

template <class T>
void compare_with_formula(AdamW const& optimizer, Scalars const& scalars) {
  ThreadPool pool(2);
  auto arena = Arena<T>(1000);
  auto const before = arena;
  step(optimizer, pool, arena, 0, arena.count(), scalars);
  // u is the unit roundoff of T; bounds are of first order, rounded up for the rest. Every coefficient is rounded once
  // (u), and so is every operation; hence g has 2u.
  // m: 2u|g| + u|g - m0| from the difference, 2u more by its factor and product, u|m| by the sum: below 8u (|m0| + |g|)
  // v: both terms are positive: g^2 has 5u, its factor, product and the sum 3u more: 8u, below 9u v
  // denominator: half of v's and u for the root, 2u for its scale, u for the sum: below 9u
  // x: |m|/denominator has 8u (|m0| + |g|) and 9u + 3u more for rate, product and quotient, all within 21u rate (|m0| +
  // |g|) / denominator; keep x0 has 2u, the difference u of both: below 24u moved + 4u |x0|
  auto const u = static_cast<long double>(std::numeric_limits<T>::epsilon()) / 2;
  for (std::size_t i = 0; i < arena.values.size(); ++i) {
    Reference const r(optimizer, scalars, before.values[i], before.gradients[i], before.states[0][i],
                      before.states[1][i]);
    CHECK(std::abs(arena.states[0][i] - r.m) <= 8 * u * r.summed_m);
    CHECK(std::abs(arena.states[1][i] - r.v) <= 9 * u * r.v);
    CHECK(std::abs(arena.values[i] - r.x) <=
          24 * u * r.moved + 4 * u * std::abs(static_cast<long double>(before.values[i])));
  }
  CHECK(arena.gradients == before.gradients);
}

}  // namespace

TEST_CASE_TEMPLATE("AdamW follows its formula within the rounding of each operation", T, float, double) {
  for (double t : {1., 2., 10., 1000., 1e6}) {
    CAPTURE(t);
    compare_with_formula<T>(AdamW{}, {.step = t, .learning_rate = 1e-3});
    compare_with_formula<T>(AdamW{.beta1 = 0.8, .beta2 = 0.95, .epsilon = 1e-3, .weight_decay = 0.3},
                            {.step = t, .learning_rate = 0.1, .weight = 24, .clip = 0.37});
    compare_with_formula<T>(AdamW{.weight_decay = 0}, {.step = t, .learning_rate = 3e-4, .weight = 4096});
  }
}

TEST_CASE("the first step from zero changes values by the learning rate against the gradient's sign") {
  ThreadPool pool;
  Arena<double> arena(100);
  auto const before = arena;
  for (auto& state : arena.states) state.assign(100, 0);
  step(AdamW{.weight_decay = 0}, pool, arena, 0, 100, {.step = 1, .learning_rate = 0.01});
  for (std::size_t i = 0; i < 100; ++i) {
    // |m| / sqrt(v) is 1 except for epsilon / |g| and rounding; gradients of this arena are above 1e-3.
    auto const moved = (before.values[i] - arena.values[i]) * (before.gradients[i] > 0 ? 1 : -1);
    CHECK(moved == doctest::Approx(0.01).epsilon(1e-8 / std::abs(before.gradients[i]) + 1e-12));
  }
}

TEST_CASE("a sum's gradient over its weight is the mean's gradient; clip multiplies it") {
  ThreadPool pool;
  Arena<float> mean(777), sum(777), clipped(777);
  for (auto& g : sum.gradients) g *= 8;
  for (auto& g : clipped.gradients) g *= 4;
  step(AdamW{}, pool, mean, 0, 777, {.learning_rate = 0.1});
  step(AdamW{}, pool, sum, 0, 777, {.learning_rate = 0.1, .weight = 8});
  step(AdamW{}, pool, clipped, 0, 777, {.learning_rate = 0.1, .weight = 2, .clip = 0.5});
  CHECK(sum.values == mean.values);  // powers of two: exact
  CHECK(sum.states == mean.states);
  CHECK(clipped.values == mean.values);
}

TEST_CASE("moments without a gradient shrink to zero without subnormal numbers, which slow the processor down") {
  ThreadPool pool;
  Arena<float> arena(200);
  std::fill(arena.gradients.begin(), arena.gradients.end(), 0.F);
  for (std::size_t i = 0; i < 100; ++i) arena.states[1][i] = 1e-30F;
  for (double t = 1; t < 2000; ++t) {
    step(AdamW{}, pool, arena, 0, 200, {.step = t, .learning_rate = 1e-3});
    for (auto const& state : arena.states)
      for (float e : state) REQUIRE(std::fpclassify(e) != FP_SUBNORMAL);
  }
  CHECK(arena.states[0] == std::vector<float>(200, 0));
  CHECK(arena.states[1][0] > 0);  // 1e-30 0.999^2000
  CHECK(arena.states[1][150] > 0);
  std::fill(arena.states[1].begin(), arena.states[1].end(), 9e-34F);  // zero below 2^-110 = 7.7e-34
  step(AdamW{.beta2 = 0.9}, pool, arena, 0, 200, {.learning_rate = 1e-3});
  CHECK(arena.states[1][0] > 0);
  step(AdamW{.beta2 = 0.9}, pool, arena, 0, 200, {.learning_rate = 1e-3});
  CHECK(arena.states[1] == std::vector<float>(200, 0));
}

TEST_CASE("weight 0 and skip change nothing, whatever the gradient") {
  ThreadPool pool;
  Arena<float> arena(100);
  arena.gradients[3] = std::numeric_limits<float>::quiet_NaN();
  auto const before = arena;
  step(AdamW{}, pool, arena, 0, 100, {.learning_rate = 0.1, .weight = 0});
  step(AdamW{}, pool, arena, 0, 100, {.learning_rate = 0.1, .skip = true});
  CHECK(arena.values == before.values);
  CHECK(arena.states == before.states);
}

TEST_CASE("arena padding, zero everywhere, stays zero") {
  ThreadPool pool;
  Arena<float> arena(0);
  arena.values.assign(64, 0);
  arena.gradients = arena.values;
  arena.states = {arena.values, arena.values};
  for (double t = 1; t < 4; ++t) step(AdamW{}, pool, arena, 0, 64, {.step = t, .learning_rate = 1});
  CHECK(arena.values == std::vector<float>(64, 0));
}

TEST_CASE("bits depend neither on threads nor on the division of the arena") {
  ThreadPool alone;
  for (Index count : {0, 1, 31, 32, 33, 255, 256, 257, 16383, 16384, 16385, 50001}) {
    CAPTURE(count);
    Arena<float> whole(count);
    step(AdamW{}, alone, whole, 0, count, {.learning_rate = 0.1, .weight = 3});
    for (int threads : {1, 2, 3}) {
      ThreadPool pool(threads);
      Arena<float> halves(count);
      for (auto [begin, end] : {std::pair{count / 3, count}, std::pair{Index{0}, count / 3}})
        step(AdamW{}, pool, halves, begin, end, {.learning_rate = 0.1, .weight = 3});
      CHECK(halves == whole);
    }
  }
}

TEST_CASE("any division gives the bits of one step over the whole arena") {
  CHECK(rc::check("cuts", [] {
    ThreadPool pool(2);
    auto const count = *rc::gen::inRange<Index>(0, 2000);
    auto cuts = *rc::gen::container<std::vector<Index>>(rc::gen::inRange<Index>(0, count + 1));
    cuts.insert(cuts.end(), {0, count});
    std::sort(cuts.begin(), cuts.end());
    Arena<float> whole(count), parts(count);
    step(AdamW{}, pool, whole, 0, count, {.step = 3, .learning_rate = 0.1});
    for (std::size_t i = 1; i < cuts.size(); ++i)
      step(AdamW{}, pool, parts, cuts[i - 1], cuts[i], {.step = 3, .learning_rate = 0.1});
    RC_ASSERT(parts == whole);
  }));
}

TEST_CASE("AdamW has PyTorch's defaults, a decay of 0.01, and follows the settings of parameter groups") {
  CHECK(AdamW{}.learning_rate == 1e-3);
  CHECK(lockstep_test::described(AdamW{.epsilon = 0.5}) ==
        "beta1 = 0.900000 beta2 = 0.999000 epsilon = 0.500000 weight decay = 0.010000 untouched rows = 0.000000 ");
  CHECK(lockstep_test::heeds_groups(AdamW{}));
  CHECK_THROWS_WITH_AS(AdamW{.weight_decay = -1}.check(),
                       "AdamW: weight_decay is -1; it must be a finite number of at least 0", lockstep::ConfigError);
}
