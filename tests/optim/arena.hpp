// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <random>
#include <string>
#include <vector>

#include <lockstep/optim/optimizer.hpp>

namespace lockstep_test {

/// Random values, gradients and two non-negative states, as in the middle of a run.
template <class T>
struct Arena {
  std::vector<T> values, gradients;
  std::array<std::vector<T>, 2> states;

  explicit Arena(lockstep::Index count, unsigned seed = 1) {
    std::mt19937 random(seed);
    auto fill = [&](std::vector<T>& out, double low, double high) {
      std::uniform_real_distribution<double> uniform(low, high);
      out.resize(static_cast<std::size_t>(count));
      for (auto& e : out) e = static_cast<T>(uniform(random));
    };
    fill(values, -1, 1);
    fill(gradients, -8, 8);
    fill(states[0], -0.1, 0.1);
    fill(states[1], 1e-6, 0.1);
  }

  bool operator==(Arena const&) const = default;
  [[nodiscard]] lockstep::Index count() const { return static_cast<lockstep::Index>(values.size()); }
};

/// Steps elements [begin, end) of the arena, which belong to a group with this rate and decay.
template <class O, class T>
void step(O const& optimizer, lockstep::ThreadPool& pool, Arena<T>& arena, lockstep::Index begin, lockstep::Index end,
          lockstep::optim::StepScalars<lockstep::HostSpace> scalars, double rate = 1, double decays = 1) {
  std::array<T*, 2> const states{arena.states[0].data() + begin, arena.states[1].data() + begin};
  lockstep::memory::Stream<lockstep::HostSpace> const stream(pool);
  lockstep::optim::Slice<T, lockstep::HostSpace> const slice{.offset = begin,
                                                             .count = end - begin,
                                                             .values = arena.values.data() + begin,
                                                             .gradients = arena.gradients.data() + begin,
                                                             .states = states.data(),
                                                             .rate = rate,
                                                             .decays = decays};
  optimizer.step(stream, slice, &scalars);
}

/// A group without decay steps like an optimizer without weight decay, one with half the decay like an optimizer with
/// half the decay, and one with half the rate like an optimizer with half the rate.
template <class O>
[[nodiscard]] bool heeds_groups(O optimizer) {
  lockstep::ThreadPool pool;
  auto const stepped = [&](O const& by, double learning_rate, double rate, double decays) {
    Arena<float> arena(100);
    step(by, pool, arena, 0, 100, {.step = 3, .learning_rate = learning_rate}, rate, decays);
    return arena;
  };
  optimizer.weight_decay = 0.1;
  auto without = optimizer;
  without.weight_decay = 0;
  auto half = optimizer;
  half.weight_decay = 0.05;
  return stepped(optimizer, 0.1, 1, 0) == stepped(without, 0.1, 1, 1) &&
         stepped(optimizer, 0.1, 1, 0.5) == stepped(half, 0.1, 1, 1) &&
         stepped(optimizer, 0.1, 0.5, 1) == stepped(optimizer, 0.05, 1, 1) &&
         stepped(optimizer, 0.1, 1, 1) != stepped(without, 0.1, 1, 1) &&
         stepped(optimizer, 0.1, 1, 1) != stepped(half, 0.1, 1, 1) &&
         stepped(optimizer, 0.1, 1, 1) != stepped(optimizer, 0.05, 1, 1);
}

/// Returns an optimizer's description: a list of "name = value ".
template <class O>
[[nodiscard]] std::string described(O const& optimizer) {
  std::string out;
  optimizer.describe([&](char const* name, auto value) {
    out += std::string(name) + " = " + std::to_string(static_cast<double>(value)) + " ";
  });
  return out;
}

}  // namespace lockstep_test
