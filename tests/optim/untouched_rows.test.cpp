// SPDX-License-Identifier: Apache-2.0
#include <lockstep/optim/untouched_rows.hpp>

#include <doctest/doctest.h>

#include <optim/arena.hpp>
#include <lockstep/optim/adagrad.hpp>
#include <lockstep/optim/adam.hpp>
#include <lockstep/optim/adamw.hpp>
#include <lockstep/optim/nadam.hpp>
#include <lockstep/optim/rmsprop.hpp>
#include <lockstep/optim/sgd.hpp>

using namespace lockstep;
using lockstep_test::Arena;
using optim::UntouchedRows;

namespace {
constexpr Index rows = 50, width = 7;

/// A step of a table whose rows 3, 4 and 49 were touched.
template <class Optimizer>
Arena<float> stepped(Optimizer const& optimizer, Arena<float> arena) {
  ThreadPool pool;
  std::uint64_t bits[1] = {};
  float* const states[] = {arena.states[0].data(), arena.states[1].data()};
  optim::Slice<float, HostSpace> slice{0, rows * width, arena.values.data(), arena.gradients.data(), states};
  slice.touched = {0, rows, width, bits};
  for (Index row : {3, 4, 49}) slice.touched.insert(row);
  optim::StepScalars<HostSpace> const scalars{.step = 3, .learning_rate = 0.1};
  optimizer.step(memory::Stream<HostSpace>(pool), slice, &scalars);
  return arena;
}

template <class Optimizer>
void check(Optimizer optimizer) {
  Arena<float> const before(rows * width);
  optimizer.untouched_rows = UntouchedRows::update;
  auto const followed = stepped(optimizer, before);
  optimizer.untouched_rows = UntouchedRows::skip;
  auto const stayed = stepped(optimizer, before);
  for (Index row = 0; row < rows; ++row)
    for (Index j = 0; j < width; ++j) {
      auto const i = static_cast<std::size_t>(row * width + j);
      bool const touched = row == 3 || row == 4 || row == 49;
      CHECK(followed.values[i] != before.values[i]);
      CHECK(stayed.values[i] == (touched ? followed : before).values[i]);
      for (std::size_t s : {0U, 1U}) CHECK(stayed.states[s][i] == (touched ? followed : before).states[s][i]);
    }
}
}  // namespace

TEST_CASE("untouched rows step with a zero gradient by default, or stay unchanged on request") {
  check(optim::AdamW{});
  check(optim::Adam{});
  check(optim::SGD{.momentum = 0.9});
  check(optim::SGD{.weight_decay = 0.1});
  check(optim::RMSprop{.momentum = 0.9});
  check(optim::Adagrad{.weight_decay = 0.1});
  check(optim::NAdam{});
}
