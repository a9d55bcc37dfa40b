// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <array>
#include <cstddef>
#include <random>
#include <vector>

#include <lockstep/optim/optimizer.hpp>

namespace lockstep_test {

/// Random values, gradients and two non-negative states, as an optimizer meets them in the middle of a run.
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

/// Steps elements [begin, end) of the arena.
template <class O, class T>
void step(O const& optimizer, lockstep::ThreadPool& pool, Arena<T>& arena, lockstep::Index begin, lockstep::Index end,
          lockstep::optim::StepScalars<lockstep::HostSpace> scalars) {
  std::array<T*, 2> const states{arena.states[0].data() + begin, arena.states[1].data() + begin};
  lockstep::memory::Stream<lockstep::HostSpace> const stream(pool);
  optimizer.step(stream,
                 lockstep::optim::Slice<T, lockstep::HostSpace>{begin, end - begin, arena.values.data() + begin,
                                                                arena.gradients.data() + begin, states.data()},
                 &scalars);
}

}  // namespace lockstep_test
