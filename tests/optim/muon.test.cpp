// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/muon.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <vector>
#include <optim/arena.hpp>

#include <lockstep/core/bfloat16.hpp>

using namespace lockstep;
using lockstep_test::Arena;
using optim::Muon;

// Here and not in the header, where it would take memory in each program. tests/golden/optimizers.test.cpp compares
// steps with PyTorch's.
static_assert(optim::Optimizer<Muon> && optim::Optimizer<Muon, double>);
static_assert(optim::steps_whole_parameters<Muon>() && !optim::takes_touched_rows<Muon>());

namespace {

struct Settings {
  double rate = 1, decays = 1;
  int threads = 1;
  optim::HalfPrecisionCopy copy = {};
};

/// Steps the arena as one matrix with these rows.
template <class T>
void step(Muon const& muon, Arena<T>& arena, Index rows, optim::StepScalars<HostSpace> scalars,
          Settings const& settings = {}) {
  ThreadPool pool(settings.threads);
  Index const shape[] = {rows, arena.count() / rows};
  std::vector<T> work(static_cast<std::size_t>(Muon::work_elements(shape)));
  T* const states[] = {arena.states[0].data()};
  optim::Slice<T, HostSpace> slice{.count = arena.count(),
                                   .values = arena.values.data(),
                                   .gradients = arena.gradients.data(),
                                   .states = states,
                                   .half_precision = settings.copy,
                                   .rate = settings.rate,
                                   .decays = settings.decays,
                                   .name = "layer.weight",
                                   .shape = shape,
                                   .work = work.data()};
  muon.step(memory::Stream<HostSpace>(pool), slice, &scalars);
}
template <class T>
Arena<T> stepped(Muon const& muon, Arena<T> arena, Index rows, optim::StepScalars<HostSpace> scalars,
                 Settings const& settings = {}) {
  step(muon, arena, rows, scalars, settings);
  return arena;
}

}  // namespace

TEST_CASE("Muon moves its momentum to the gradient of the mean, and steps along the orthogonal direction") {
  Arena<double> const before(20 * 30);
  Muon const muon{.momentum = 0.8, .weight_decay = 0.3};
  auto const after = stepped(muon, before, 20, {.step = 5, .learning_rate = 0.05, .weight = 24, .clip = 0.37});
  auto direction = before.values, work = std::vector<double>(600 + 2 * 400);
  for (std::size_t i = 0; i < 600; ++i) {
    auto const g = before.gradients[i] * (0.37 / 24);
    auto const m = before.states[0][i] + 0.2 * (g - before.states[0][i]);
    CHECK(after.states[0][i] == doctest::Approx(m).epsilon(1e-13));
    direction[i] = g + 0.8 * (m - g);
  }
  ThreadPool pool;
  auto const* const orthogonal = kernel::Orthogonalize<HostSpace>::run<double>(
      memory::Stream<HostSpace>(pool), {muon.coefficients, 5, 1e-7}, {direction.data(), {20, 30}}, work.data());
  for (std::size_t i = 0; i < 600; ++i)
    CHECK(after.values[i] ==
          doctest::Approx((1 - 0.05 * 0.3) * before.values[i] - 0.05 * orthogonal[i]).epsilon(1e-11));
  CHECK(after.gradients == before.gradients);
  CHECK(after.states[1] == before.states[1]);
}

TEST_CASE("a step's size depends on the shape only, by the adjustment") {
  using enum Muon::Adjustment;
  Muon muon;
  CHECK(muon.adjustment_of(100, 400) == 1);
  CHECK(muon.adjustment_of(400, 100) == 2);
  muon.adjustment = match_rms_adamw;
  CHECK(muon.adjustment_of(100, 400) == doctest::Approx(4));
  CHECK(muon.adjustment_of(400, 100) == doctest::Approx(4));
  muon.adjustment = spectral_unclamped;
  CHECK(muon.adjustment_of(100, 400) == 0.5);
  CHECK(muon.adjustment_of(400, 100) == 2);
  // The singular values of a direction end between 0.3 and 1.21, and their mean square near 0.8: with match_rms_adamw,
  // the root mean square of a step's elements is 0.2 times the root of that, for any shape and gradient.
  muon = {.weight_decay = 0, .adjustment = match_rms_adamw};
  for (Index rows : {20, 60, 180}) {
    Arena<float> const before(3600);
    auto const after = stepped(muon, before, rows, {.learning_rate = 0.1});
    double squares = 0;
    for (std::size_t i = 0; i < 3600; ++i)
      squares += std::pow(static_cast<double>(after.values[i] - before.values[i]), 2);
    auto const size = std::sqrt(squares / 3600) / 0.1;
    CHECK(size > 0.2 * 0.7);
    CHECK(size < 0.2 * 1.1);
  }
}

TEST_CASE("Muon's bits do not depend on threads") {
  for (Index rows : {1, 31, 150}) {
    auto const one = stepped(Muon{}, Arena<float>(rows * 200), rows, {.step = 3, .learning_rate = 0.1, .weight = 3});
    for (int threads : {2, 3})
      CHECK(stepped(Muon{}, Arena<float>(rows * 200), rows, {.step = 3, .learning_rate = 0.1, .weight = 3},
                    {.threads = threads}) == one);
  }
}

TEST_CASE("Muon changes nothing at weight 0 and on skip, and writes the copy of 16 bits") {
  Arena<float> const before(300);
  CHECK(stepped(Muon{}, before, 10, {.learning_rate = 0.1, .weight = 0}) == before);
  CHECK(stepped(Muon{}, before, 10, {.learning_rate = 0.1, .skip = true}) == before);
  std::vector<bfloat16> copy(300);
  auto const after = stepped(Muon{}, before, 10, {.learning_rate = 0.1}, {.copy = copy.data()});
  CHECK(after == stepped(Muon{}, before, 10, {.learning_rate = 0.1}));
  for (std::size_t i = 0; i < 300; ++i) CHECK(copy[i].bits == bfloat16(after.values[i]).bits);
}

TEST_CASE("a gradient and a momentum of zero leave weight decay alone") {
  Arena<float> arena(100);
  arena.gradients = arena.states[0] = std::vector<float>(100);
  auto const after = stepped(Muon{.weight_decay = 0.5}, arena, 10, {.learning_rate = 0.5});
  for (std::size_t i = 0; i < 100; ++i) CHECK(after.values[i] == 0.75f * arena.values[i]);
}

TEST_CASE("Muon follows the settings of parameter groups, and describes its settings") {
  Arena<float> const arena(120);
  auto const with = [&](double learning_rate, double weight_decay, Settings const& settings = {}) {
    return stepped(Muon{.weight_decay = weight_decay}, arena, 12, {.learning_rate = learning_rate}, settings);
  };
  CHECK(with(0.1, 0.1, {.decays = 0}) == with(0.1, 0));
  CHECK(with(0.1, 0.1, {.decays = 0.5}) == with(0.1, 0.05));
  CHECK(with(0.1, 0.1, {.rate = 0.5}) == with(0.05, 0.1));
  CHECK(with(0.1, 0.1) != with(0.1, 0));
  CHECK(with(0.1, 0.1) != with(0.05, 0.1));
  CHECK(lockstep_test::described(Muon{.kind = Muon::Momentum::heavy_ball, .iterations = 7}) ==
        "momentum = 0.950000 kind of momentum = 0.000000 weight decay = 0.100000 adjustment = 0.000000 "
        "coefficient a = 3.444500 coefficient b = -4.775000 coefficient c = 2.031500 iterations = 7.000000 "
        "epsilon = 0.000000 ");
}

TEST_CASE("invalid settings of Muon, and parameters that are no matrix, are refused by name") {
  CHECK_NOTHROW(Muon{}.check());
  auto const refused = [](Muon const& optimizer, char const* message) {
    CHECK_THROWS_WITH_AS(optimizer.check(), message, ConfigError);
  };
  refused({.learning_rate = -1}, "Muon: learning_rate is -1; it must be a finite number of at least 0");
  refused({.momentum = 1}, "Muon: momentum is 1; it must be at least 0 and below 1");
  refused({.weight_decay = -1}, "Muon: weight_decay is -1; it must be a finite number of at least 0");
  refused({.coefficients = {1, std::nan(""), 0}}, "Muon: coefficients[1] is nan; it must be a finite number");
  refused({.iterations = 0}, "Muon: iterations is 0; it must be from 1 to 99");
  refused({.iterations = 100}, "Muon: iterations is 100; it must be from 1 to 99");
  refused({.epsilon = 0}, "Muon: epsilon is 0; it must be above 0: a gradient of zeros is divided by it");
  refused({.epsilon = -1}, "Muon: epsilon is -1; it must be a finite number of at least 0");
  Index const shape[] = {4, 2, 3};
  auto const message =
      "Muon: the parameter \"conv.weight\" is [4, 2, 3]; Muon updates matrices, which have two axes; give it to "
      "another "
      "optimizer with optim::Partitioned{optim::Muon{…}, optim::AdamW{…}, rule}";
  CHECK_THROWS_WITH_AS(Muon::check_parameter("conv.weight", shape), message, ConfigError);
  ThreadPool pool;
  optim::StepScalars<HostSpace> const scalars;
  optim::Slice<float, HostSpace> const slice{.name = "conv.weight", .shape = shape};
  CHECK_THROWS_WITH_AS(Muon{}.step(memory::Stream<HostSpace>(pool), slice, &scalars), message, ConfigError);
}
