// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/averaged.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include <lockstep/core/error.hpp>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/sgd.hpp>

#include "optim/arena.hpp"

using namespace lockstep;
using Scalars = optim::StepScalars<HostSpace>;
static_assert(optim::Optimizer<optim::Averaged<optim::AdamW>> && optim::averages<optim::Averaged<optim::SGD>>);
static_assert(!optim::averages<optim::AdamW>);

namespace {

/// An optimizer of a user, without a rule for kernel::OptimizerStep.
struct Lion {
  double learning_rate = 1e-3;
  static constexpr int states = 1;
  template <class T>
  void step(memory::Stream<HostSpace>, optim::Slice<T, HostSpace> slice, Scalars const* scalars) const {
    if (!scalars->active()) return;
    auto const rate = static_cast<T>(scalars->learning_rate * slice.rate);
    auto const scale = static_cast<T>(scalars->gradient_scale());
    for (Index i = 0; i < slice.count; ++i) {
      auto& moment = slice.states[0][i];
      auto const gradient = slice.gradients[i] * scale,
                 blend = static_cast<T>(0.9) * moment + static_cast<T>(0.1) * gradient;
      slice.values[i] -= rate * static_cast<T>((blend > 0) - (blend < 0));
      moment = static_cast<T>(0.99) * moment + static_cast<T>(0.01) * gradient;
    }
  }
};

/// Makes that many steps with equal gradients, with an optimizer that has `states`; returns value and states of each
/// element.
template <class T, class O>
std::vector<std::vector<T>> stepped(O const& optimizer, int steps, Index cut) {
  ThreadPool pool(2);
  memory::Stream<HostSpace> const stream(pool);
  lockstep_test::Arena<T> const start(1000);
  std::vector<std::vector<T>> all(1 + O::states, std::vector<T>(1000));
  all[0] = start.values;
  for (int t = 1; t <= steps; ++t)
    for (auto const& [begin, end] : {std::pair{Index{0}, cut}, {cut, Index{1000}}}) {
      std::array<T*, O::states> states{};
      for (std::size_t s = 0; s < states.size(); ++s) states[s] = all[1 + s].data() + begin;
      optim::Slice<T, HostSpace> const slice{.offset = begin,
                                             .count = end - begin,
                                             .values = all[0].data() + begin,
                                             .gradients = start.gradients.data() + begin,
                                             .states = states.data()};
      Scalars const scalars{.step = static_cast<double>(t), .learning_rate = 0.1 / t};
      optimizer.step(stream, slice, &scalars);
    }
  return all;
}

template <class T, class O>
void check(O const& optimizer) {
  double const decay = 0.75;
  std::vector<double> average(1000);
  for (int t = 1; t <= 9; ++t) {
    auto const plain = stepped<T>(optimizer, t, 500);
    auto const averaged = stepped<T>(optim::Averaged{optimizer, decay}, t, 333);
    for (std::size_t s = 0; s < plain.size(); ++s) CHECK(averaged[s] == plain[s]);  // bit-identical
    for (std::size_t i = 0; i < 1000; ++i) {
      average[i] += std::max(1 - decay, 1.0 / t) * (static_cast<double>(plain[0][i]) - average[i]);
      auto const lag = static_cast<double>(averaged.back()[i]);
      CHECK(std::abs(static_cast<double>(plain[0][i]) - lag - average[i]) <= 1e-6);  // values are up to about 2
    }
  }
}

}  // namespace

TEST_CASE("it steps as its optimizer, bit-identically, and its last state is the average's difference from the value") {
  check<float>(optim::AdamW{});
  check<float>(optim::SGD{.momentum = 0.9});
  check<double>(optim::AdamW{});
}

TEST_CASE("it averages the parameters of an optimizer without a rule, and a step that is not active changes nothing") {
  check<float>(Lion{});
  check<double>(Lion{});
  float value = 1, gradient = 1, moment = 2, lag = 3;
  float* const states[] = {&moment, &lag};
  ThreadPool pool;
  Scalars const scalars{.step = 1, .learning_rate = 1, .weight = 0};
  REQUIRE(!scalars.active());
  optim::Averaged{Lion{}}.step(memory::Stream<HostSpace>(pool),
                               optim::Slice<float, HostSpace>{0, 1, &value, &gradient, states}, &scalars);
  CHECK(std::array{value, moment, lag} == std::array{1.0f, 2.0f, 3.0f});
}

TEST_CASE("blocks of an optimizer without a rule give the bits of one slice") {
  ThreadPool pool;
  lockstep_test::Arena<float> plain(5000), averaged(5000);
  Scalars const scalars{.step = 2, .learning_rate = 0.5};
  lockstep_test::step(Lion{}, pool, plain, 0, 5000, scalars, 0.5);
  lockstep_test::step(optim::Averaged{Lion{}}, pool, averaged, 0, 5000, scalars, 0.5);
  CHECK(averaged.values == plain.values);
  CHECK(averaged.states[0] == plain.states[0]);
}

TEST_CASE("its settings are its optimizer's, and its own") {
  optim::Averaged averaged{optim::AdamW{.learning_rate = 0.5, .weight_decay = 0.25}, 0.99};
  CHECK(averaged.learning_rate == 0.5);
  CHECK(averaged.name() == "Averaged AdamW");
  CHECK(lockstep_test::described(averaged).find("decay of the average = 0.990000") != std::string::npos);
  CHECK(lockstep_test::described(averaged).find("weight decay = 0.250000") != std::string::npos);
  averaged.check();
  averaged.decay = 1;
  CHECK_THROWS_WITH_AS(averaged.check(), "Averaged: decay is 1; it must be at least 0 and below 1", ConfigError);
  averaged.decay = 0.9, averaged.beta1 = 2;
  CHECK_THROWS_AS(averaged.check(), ConfigError);
}
