// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/optimizer/optimizer_step.hpp>

#include <doctest/doctest.h>

#include <numeric>
#include <vector>
#include <lockstep/optim/slice.hpp>

using lockstep::HostSpace;
using lockstep::Index;
using Kernel = lockstep::kernel::OptimizerStep<HostSpace>;
using Slice = lockstep::optim::Slice<float, HostSpace>;

namespace {
struct Scalars {
  bool on;
  [[nodiscard]] bool active() const { return on; }
};

/// Values count visits; two states take the gradient and the gradient's negative.
struct Count {
  bool passes_over = false;
  [[nodiscard]] bool leaves_untouched_rows() const { return passes_over; }
  void operator()(Index n, float* values, float const* gradients, std::array<float*, 2> states) const {
    CHECK(n >= 1);
    CHECK(n <= Kernel::block);
    for (Index i = 0; i < n; ++i) {
      values[i] += 1;
      states[0][i] = gradients[i];
      states[1][i] = -gradients[i];
    }
  }
};
Count count_visits(Scalars const&) { return {}; }
}  // namespace

TEST_CASE("the rule visits every element once, with its gradient and states, in blocks") {
  for (Index count : {0, 1, 31, 32, 33, 255, 256, 257, 16383, 16384, 16385}) {
    for (int threads : {1, 3}) {
      lockstep::ThreadPool pool(threads);
      auto const n = static_cast<std::size_t>(count);
      std::vector<float> values(n), gradients(n), first(n), second(n);
      std::iota(gradients.begin(), gradients.end(), 1.F);
      float* const states[] = {first.data(), second.data()};
      Scalars const scalars{true};
      Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool),
                     Slice{0, count, values.data(), gradients.data(), states}, &scalars, count_visits);
      CHECK(values == std::vector<float>(n, 1));
      CHECK(first == gradients);
      for (std::size_t i = 0; i < n; ++i) CHECK(second[i] == -gradients[i]);
    }
  }
}

TEST_CASE("an inactive step writes nothing and does not call the rule") {
  lockstep::ThreadPool pool;
  std::vector<float> values(10), gradients(10), state(10);
  float* const states[] = {state.data(), state.data()};
  Scalars const scalars{false};
  bool asked = false;
  Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), Slice{0, 10, values.data(), gradients.data(), states},
                 &scalars, [&](Scalars const& s) {
                   asked = true;
                   return count_visits(s);
                 });
  CHECK_FALSE(asked);
  CHECK(values == std::vector<float>(10));
}

TEST_CASE("gradients of untouched rows count as zero, whatever the memory and wherever the slice begins") {
  for (Index width : {1, 7, 128, 300}) {
    constexpr Index rows = 200, offset = 32;
    auto const count = rows * width;
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(lockstep::kernel::TouchedRows::words_for(rows)));
    lockstep::kernel::TouchedRows const table{offset, rows, width, bits.data()};
    for (Index row = 0; row < rows; ++row)
      if (row % 3 == 0 || (row > 60 && row < 140)) table.insert(row);
    std::vector<float> gradients(static_cast<std::size_t>(count));
    std::iota(gradients.begin(), gradients.end(), 1.F);
    Scalars const scalars{true};
    for (Index begin : {Index{0}, width / 2, 61 * width + 1}) {
      auto const n = static_cast<std::size_t>(count - begin);
      std::vector<float> values(n), first(n), second(n);
      float* const states[] = {first.data(), second.data()};
      Slice slice{offset + begin, count - begin, values.data(), gradients.data() + begin, states};
      slice.touched = table;
      lockstep::ThreadPool pool(2);
      Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), slice, &scalars, count_visits);
      CHECK(values == std::vector<float>(n, 1));
      for (Index i = 0; i < count - begin; ++i)
        CHECK(first[static_cast<std::size_t>(i)] ==
              (table.contains((begin + i) / width) ? gradients[static_cast<std::size_t>(begin + i)] : 0));
      Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), slice, &scalars,
                     [](Scalars const&) { return Count{.passes_over = true}; });
      for (Index i = 0; i < count - begin; ++i)
        CHECK(values[static_cast<std::size_t>(i)] == (table.contains((begin + i) / width) ? 2 : 1));
    }
  }
}

TEST_CASE_TEMPLATE("the shadow receives the new values, rounded to its type", Low, lockstep::bfloat16,
                   lockstep::float16) {
  lockstep::ThreadPool pool(2);
  std::vector<float> values(20'000), gradients(values.size()), first(values.size()), second(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = 1.F / static_cast<float>(i + 3);
  std::vector<Low> shadow(values.size());
  float* const states[] = {first.data(), second.data()};
  Slice slice{0, static_cast<Index>(values.size()), values.data(), gradients.data(), states};
  slice.half_precision = shadow.data();
  Scalars const scalars{true};
  Kernel::run<2>(lockstep::memory::Stream<HostSpace>(pool), slice, &scalars, count_visits);
  for (std::size_t i = 0; i < values.size(); ++i) {
    REQUIRE(values[i] > 1);  // the step was made
    CHECK(shadow[i].bits == Low(values[i]).bits);
  }
}
