// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/linear/gated_linear.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "kernel/values.hpp"
#include "kernel/view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::GatedLinear<HostSpace>;

namespace {

template <class T>
struct Case {
  Index rows, inputs, outputs;
  bool biased = true;
  std::vector<T> x = values<T>(rows * inputs, 1), weight = values<T>(outputs * inputs, 2), bias = values<T>(outputs, 3),
                 gate = values<T>(rows * outputs, 4), slope = values<T>(rows * outputs, 5);
};

template <class T>
struct Results {
  std::vector<T> y, slope;
  friend bool operator==(Results const&, Results const&) = default;
};

template <class T>
Results<T> run(Case<T> const& c, int threads) {
  ThreadPool pool(threads);
  Results<T> r{std::vector<T>(c.gate.size(), std::numeric_limits<T>::quiet_NaN()), c.slope};
  TensorView<T const, 1, HostSpace> bias;
  if (c.biased) bias = view(c.bias, c.outputs);
  Kernel::forward<T>(memory::Stream<HostSpace>(pool), view(c.x, c.rows, c.inputs), view(c.weight, c.outputs, c.inputs),
                     bias, view(c.gate, c.rows, c.outputs), view(r.slope, c.rows, c.outputs),
                     view(r.y, c.rows, c.outputs));
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("forward is within its bound of the definition", T, float, double) {
  // A unit of rounding; for double, the reference rounds as well.
  double const u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * (sizeof(T) == 8 ? 2 : 1);
  for (auto const& shape : {std::array<Index, 3>{0, 3, 5}, {1, 1, 1}, {31, 33, 32}, {257, 7, 65}, {3, 300, 260}})
    for (bool biased : {false, true}) {
      Case<T> const c{.rows = shape[0], .inputs = shape[1], .outputs = shape[2], .biased = biased};
      auto const r = run(c, 2);
      bool y = true, slope = true;
      for (Index row = 0; row < c.rows; ++row)
        for (Index o = 0; o < c.outputs; ++o) {
          double h = biased ? static_cast<double>(c.bias[static_cast<std::size_t>(o)]) : 0, magnitude = std::abs(h);
          for (Index i = 0; i < c.inputs; ++i) {
            double const term = static_cast<double>(c.x[static_cast<std::size_t>(row * c.inputs + i)]) *
                                static_cast<double>(c.weight[static_cast<std::size_t>(o * c.inputs + i)]);
            h += term;
            magnitude += std::abs(term);
          }
          // The products and additions of h, and the product with the gate.
          double const bound = u * static_cast<double>(c.inputs + 3) * magnitude;
          auto const at = static_cast<std::size_t>(row * c.outputs + o);
          double const gate = static_cast<double>(c.gate[at]), before = static_cast<double>(c.slope[at]);
          y = y && std::abs(static_cast<double>(r.y[at]) - gate * h) <= std::abs(gate) * bound;
          slope = slope && std::abs(static_cast<double>(r.slope[at]) - before * h) <= std::abs(before) * bound;
        }
      CAPTURE(c.rows);
      CAPTURE(biased);
      CHECK(y);
      CHECK(slope);
    }
}

TEST_CASE("without slopes the output is equal") {
  Case<float> const c{.rows = 40, .inputs = 33, .outputs = 70};
  std::vector<float> y(c.gate.size());
  ThreadPool pool(1);
  Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(c.x, 40, 33), view(c.weight, 70, 33), view(c.bias, 70),
                         view(c.gate, 40, 70), {}, view(y, 40, 70));
  CHECK(y == run(c, 1).y);
}

TEST_CASE("backward multiplies both factors") {
  ThreadPool pool(2);
  std::vector<double> gate{1, 2, 3}, slope{4, 5, 6};
  std::vector<double> const dy{-1, 0, 2};
  Kernel::backward<double>(memory::Stream<HostSpace>(pool), view(dy, 3), view(gate, 3), view(slope, 3));
  CHECK(gate == std::vector<double>{-1, 0, 6});
  CHECK(slope == std::vector<double>{-4, 0, 12});
}

TEST_CASE("bits are equal for any number of threads") {
  Case<float> const c{.rows = 1000, .inputs = 64, .outputs = 300};
  auto const one = run(c, 1);
  for (int threads : {2, 3, 4}) CHECK(run(c, threads) == one);
}

TEST_CASE("gates of another shape are refused") {
  Case<float> const c{.rows = 2, .inputs = 3, .outputs = 4};
  ThreadPool pool(1);
  std::vector<float> y(8);
  CHECK_THROWS_WITH_AS(Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(c.x, 2, 3), view(c.weight, 4, 3),
                                              view(c.bias, 4), view(c.gate, 4, 2), {}, view(y, 2, 4)),
                       doctest::Contains("the output is [2, 4], its gates are [4, 2]"), ShapeError);
}

TEST_CASE("a gated map's bias of another size is refused with both numbers") {
  Case<float> const c{.rows = 2, .inputs = 3, .outputs = 4};
  ThreadPool pool(1);
  std::vector<float> y(8);
  CHECK_THROWS_WITH_AS(Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(c.x, 2, 3), view(c.weight, 4, 3),
                                              view(c.bias, 3), view(c.gate, 2, 4), {}, view(y, 2, 4)),
                       "GatedLinear: weight is [4, 3] and bias is [3]; bias needs one element per row of weight",
                       ShapeError);
}
