// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <string>
#include <vector>
#include <lockstep/core/thread_pool.hpp>
#include <lockstep/optim/adagrad.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/lamb.hpp>
#include <lockstep/optim/muon.hpp>
#include <lockstep/optim/nadam.hpp>
#include <lockstep/optim/rmsprop.hpp>
#include <lockstep/optim/sgd.hpp>

#include "golden/golden.hpp"

using namespace lockstep;

namespace {

template <class T, class Optimizer>
void check(Optimizer const& optimizer, json::Value const& expected, std::size_t count = 4) {
  ThreadPool pool(1);
  auto values = golden::numbers<T>(expected.at("values"));
  std::array<std::vector<T>, Optimizer::states> states;
  std::array<T*, Optimizer::states> pointers{};
  for (std::size_t i = 0; i < states.size(); ++i) {
    states[i].assign(values.size(), T{0});
    pointers[i] = states[i].data();
  }
  auto const& steps = expected.at("after").array();
  REQUIRE(steps.size() == count);
  for (std::size_t step = 0; step < steps.size(); ++step) {
    auto const gradients = golden::numbers<T>(expected.at("gradients").at(step));
    optim::StepScalars<HostSpace> const scalars{.step = static_cast<double>(step + 1),
                                                .learning_rate = optimizer.learning_rate};
    optimizer.step(memory::Stream<HostSpace>(pool),
                   optim::Slice<T, HostSpace>{.count = static_cast<Index>(values.size()),
                                              .values = values.data(),
                                              .gradients = gradients.data(),
                                              .states = pointers.data()},
                   &scalars);
    // A step changes a value by at most 0.1 times 4: momentum adds up gradients of at most 1. RMSprop has a rate of
    // 0.01 and a quotient of at most 10, the root of 1 / (1 - alpha), or of 4 times 3.2 with momentum. A step has 24
    // roundings of that and 4 of the value, which is at most 2: tests/optim/adamw.test.cpp has the derivation. Adam
    // divides by a root with an equal number of roundings, so a small gradient loses no digits. Adagrad and NAdam
    // change a value by at most their rate, 0.1, times 4, and LAMB by at most its rate, 0.05, times the norm of 6
    // values, below 5.
    double const bound = static_cast<double>(step + 1) * (24 * 0.4 + 4 * 2);
    CHECK(golden::difference(values.data(), golden::numbers<double>(steps[step])) <= bound);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("four steps of each optimizer equal PyTorch's", T, double, float) {
  auto const file = golden::load("optimizers");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    optim::SGD sgd{.learning_rate = 0.1, .weight_decay = 0.01};
    if (name.find(' ') != std::string::npos) sgd.momentum = 0.9;
    if (name == "sgd nesterov") sgd.kind = optim::SGD::Momentum::nesterov;
    if (name.starts_with("sgd")) check<T>(sgd, expected), ++checked;
    if (name == "adam") check<T>(optim::Adam{.learning_rate = 0.1, .weight_decay = 0.01}, expected), ++checked;
    if (name == "adamw") check<T>(optim::AdamW{.learning_rate = 0.1, .weight_decay = 0.01}, expected), ++checked;
  }
  CHECK(checked == 5);
}

TEST_CASE_TEMPLATE("four steps of RMSprop equal PyTorch's", T, double, float) {
  auto const file = golden::load("rmsprop");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    CAPTURE(expected.at("name").string());
    optim::RMSprop rmsprop{.weight_decay = 0.01};
    if (expected.at("name").string() == "rmsprop momentum") rmsprop.alpha = rmsprop.momentum = 0.9;
    check<T>(rmsprop, expected), ++checked;
  }
  CHECK(checked == 2);
}

TEST_CASE_TEMPLATE("twenty steps of Adagrad and NAdam equal PyTorch's", T, double, float) {
  auto const file = golden::load("adagrad_nadam");
  int checked = 0;
  auto const compare = [&](auto const& optimizer, json::Value const& expected) {
    check<T>(optimizer, expected, 20);
    ++checked;
  };
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    using Decay = optim::NAdam::WeightDecay;
    if (name == "adagrad") compare(optim::Adagrad{}, expected);
    if (name == "adagrad settings")
      compare(
          optim::Adagrad{
              .learning_rate = 0.1, .learning_rate_decay = 0.1, .initial_accumulator_value = 0.5, .weight_decay = 0.01},
          expected);
    if (name == "nadam") compare(optim::NAdam{}, expected);
    if (name == "nadam coupled")
      compare(optim::NAdam{.learning_rate = 0.01, .weight_decay = 0.01, .momentum_decay = 0.1}, expected);
    if (name == "nadam decoupled")
      compare(optim::NAdam{.learning_rate = 0.01, .weight_decay = 0.01, .kind = Decay::decoupled}, expected);
  }
  CHECK(checked == 5);
}

TEST_CASE_TEMPLATE("twenty steps of LAMB equal the paper's algorithm", T, double, float) {
  auto const file = golden::load("lamb");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    auto const lamb = name == "lamb" ? optim::LAMB{.learning_rate = 0.02}
                                     : optim::LAMB{.learning_rate = 0.05, .beta1 = 0.8, .weight_decay = 0.1};
    check<T>(lamb, expected, 20), ++checked;
  }
  CHECK(checked == 2);
}

TEST_CASE_TEMPLATE("twenty steps of Muon equal PyTorch's, which orthogonalizes in float64 here", T, double, float) {
  auto const file = golden::load("muon");
  int checked = 0;
  for (auto const& expected : file.at("cases").array()) {
    auto const name = expected.at("name").string();
    CAPTURE(name);
    optim::Muon muon;
    if (name == "muon settings")
      muon = {.learning_rate = 0.02,
              .momentum = 0.8,
              .weight_decay = 0.05,
              .kind = optim::Muon::Momentum::heavy_ball,
              .adjustment = optim::Muon::Adjustment::match_rms_adamw};
    if (name == "muon cubic")
      muon = {.learning_rate = 0.1,
              .weight_decay = 0,
              .adjustment = optim::Muon::Adjustment::spectral_unclamped,
              .coefficients = {1.5, -0.5, 0},
              .iterations = 7,
              .epsilon = 2};
    auto const shape = golden::shape(expected);
    auto values = golden::numbers<T>(expected.at("values"));
    std::vector<T> moment(values.size()), work(static_cast<std::size_t>(optim::Muon::work_elements(shape)));
    T* const states[] = {moment.data()};
    ThreadPool pool(2);
    auto const& steps = expected.at("after").array();
    REQUIRE(steps.size() == 20);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      auto const gradients = golden::numbers<T>(expected.at("gradients").at(step));
      optim::StepScalars<HostSpace> const scalars{.step = static_cast<double>(step + 1),
                                                  .learning_rate = muon.learning_rate};
      muon.step(memory::Stream<HostSpace>(pool),
                optim::Slice<T, HostSpace>{.count = std::ssize(values),
                                           .values = values.data(),
                                           .gradients = gradients.data(),
                                           .states = states,
                                           .shape = shape,
                                           .work = work.data()},
                &scalars);
      // The iterates have singular values of at most 1.21, and norms of at most 2.5. With up to 6 terms per sum, an
      // iteration errs by at most 2000 units in its norm, and multiplies earlier errors by at most 3.9, the largest
      // slope of the polynomial on [0, 1.21]: in all by (1 + 3.9 + ... + 3.9^4) 2000 + 3.9^5 20 (the direction has 20
      // roundings) < 700,000 units. The cubic's slope is at most 1.5: 7 iterations stay below that. The value, at most
      // 4, has 4 roundings per step.
      double const rate = muon.learning_rate * muon.adjustment_of(shape[0], shape[1]);
      CHECK(golden::difference(values.data(), golden::numbers<double>(steps[step])) <=
            static_cast<double>(step + 1) * (rate * 7e5 + 4 * 4));
    }
    ++checked;
  }
  CHECK(checked == 5);
}
