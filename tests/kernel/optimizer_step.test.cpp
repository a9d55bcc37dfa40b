// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>
#include <vector>
#include <lockstep/kernel/optimizer_step.hpp>

using lockstep::HostSpace;
using lockstep::Index;
using Kernel = lockstep::kernel::OptimizerStep<HostSpace>;

namespace {
struct Scalars {
  bool on;
  [[nodiscard]] bool active() const { return on; }
};

/// Values count visits; two states take the gradient and the gradient's negative.
auto count_visits(Scalars const&) {
  return [](Index n, float* values, float const* gradients, std::array<float*, 2> states) {
    CHECK(n >= 1);
    CHECK(n <= Kernel::block);
    for (Index i = 0; i < n; ++i) {
      values[i] += 1;
      states[0][i] = gradients[i];
      states[1][i] = -gradients[i];
    }
  };
}
}  // namespace

TEST_CASE("the rule sees every element once, with its own gradient and states, in blocks") {
  for (Index count : {0, 1, 31, 32, 33, 255, 256, 257, 16383, 16384, 16385}) {
    for (int threads : {1, 3}) {
      lockstep::ThreadPool pool(threads);
      auto const n = static_cast<std::size_t>(count);
      std::vector<float> values(n), gradients(n), first(n), second(n);
      std::iota(gradients.begin(), gradients.end(), 1.F);
      float* const states[] = {first.data(), second.data()};
      Scalars const scalars{true};
      Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), count, values.data(), gradients.data(), states,
                     &scalars, count_visits);
      CHECK(values == std::vector<float>(n, 1));
      CHECK(first == gradients);
      for (std::size_t i = 0; i < n; ++i) CHECK(second[i] == -gradients[i]);
    }
  }
}

TEST_CASE("an inactive step touches nothing and asks for no rule") {
  lockstep::ThreadPool pool;
  std::vector<float> values(10), gradients(10), state(10);
  float* const states[] = {state.data(), state.data()};
  Scalars const scalars{false};
  bool asked = false;
  Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), 10, values.data(), gradients.data(), states, &scalars,
                 [&](Scalars const& s) {
                   asked = true;
                   return count_visits(s);
                 });
  CHECK_FALSE(asked);
  CHECK(values == std::vector<float>(10));
}
