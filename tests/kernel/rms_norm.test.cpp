// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/rms_norm.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "values.hpp"
#include "view.hpp"

using namespace lockstep;
using lockstep_test::values;
using lockstep_test::view;
using Kernel = kernel::RMSNorm<HostSpace>;

namespace {

constexpr double epsilon = 1e-6;

template <class T>
struct Case {
  Index rows, width;
  bool joins;
  std::vector<T> x = values<T>(rows * width, 1), added = values<T>(rows * width, 2), weight = values<T>(width, 3),
                 dy = values<T>(rows * width, 4), beside = values<T>(rows * width, 5);
};

template <class T>
struct Results {
  std::vector<T> sum, reciprocals, y, dx, dadded, dweight;
  friend bool operator==(Results const&, Results const&) = default;
};

template <class T>
Results<T> run(Case<T> const& c, Write write, int threads) {
  ThreadPool pool(threads);
  memory::Stream<HostSpace> const stream(pool);
  auto const start = write == Write::add ? T(1) : std::numeric_limits<T>::quiet_NaN();
  std::vector<T> const matrix(c.x.size(), start);
  Results<T> r{c.joins ? matrix : c.x,
               std::vector<T>(static_cast<std::size_t>(c.rows)),
               matrix,
               matrix,
               matrix,
               std::vector<T>(c.weight.size(), start)};
  auto const shaped = [&](auto& v) { return view(v, c.rows, c.width); };
  kernel::Residual<T, HostSpace> residual;
  TensorView<T const, 2, HostSpace> beside;
  TensorView<T, 2, HostSpace> dadded;
  if (c.joins) {
    residual.value = shaped(c.added);
    beside = shaped(c.beside);
    dadded = shaped(r.dadded);
  }
  Kernel::forward<T>(stream, shaped(c.x), residual, view(c.weight, c.width), static_cast<T>(epsilon), shaped(r.sum),
                     view(r.reciprocals, c.rows), shaped(r.y));
  std::vector<T> partial(static_cast<std::size_t>(Kernel::partial_elements(c.rows, c.width)),
                         std::numeric_limits<T>::quiet_NaN());
  Kernel::backward<T>(stream, shaped(c.dy), shaped(r.sum), view(r.reciprocals, c.rows), beside, {},
                      view(c.weight, c.width), shaped(r.dx), write, dadded, write, view(r.dweight, c.width), write,
                      partial.data());
  return r;
}

}  // namespace

TEST_CASE_TEMPLATE("results lie within their bound of the definition", T, float, double) {
  // A unit of rounding; for double, the reference rounds as well, and without care for it.
  double const u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * (sizeof(T) == 8 ? 4 : 1);
  for (auto const& shape :
       {std::array<Index, 2>{0, 8}, {1, 1}, {1, 2}, {3, 31}, {127, 32}, {129, 33}, {5, 128}, {2, 1000}})
    for (bool joins : {false, true})
      for (Write write : {Write::overwrite, Write::add}) {
        Case<T> const c{.rows = shape[0], .width = shape[1], .joins = joins};
        auto const r = run(c, write, 1);
        double const n = static_cast<double>(c.width), before = write == Write::add ? 1 : 0;
        std::vector<double> dweight(c.weight.size(), before), dweight_bound(c.weight.size(), 0);
        bool y = true, dx = true, dw = true;
        for (Index row = 0; row < c.rows; ++row) {
          auto const at = static_cast<std::size_t>(row * c.width);
          std::vector<double> s(c.weight.size());
          double square = 0, projection = 0, magnitude = 0;
          for (std::size_t i = 0; i < s.size(); ++i) {
            s[i] = static_cast<double>(r.sum[at + i]);  // rounded once, and then an input
            double const exact = static_cast<double>(c.x[at + i]) + (joins ? static_cast<double>(c.added[at + i]) : 0);
            y = y && std::abs(s[i] - exact) <= u * std::abs(exact);
            square += s[i] * s[i] / n;
          }
          double const reciprocal = 1 / std::sqrt(square + epsilon);
          // The mean square's n + 2 roundings count half behind the root; root and division round once each.
          double const off = u * ((n + 2) / 2 + 2);
          for (std::size_t i = 0; i < s.size(); ++i) {
            double const w = static_cast<double>(c.weight[i]), d = static_cast<double>(c.dy[at + i]);
            double const normalized = s[i] * reciprocal;
            y = y &&
                std::abs(static_cast<double>(r.y[at + i]) - w * normalized) <= std::abs(w * normalized) * (off + 2 * u);
            projection += d * w * normalized / n;
            magnitude += std::abs(d * w * normalized) / n;
            dweight[i] += d * normalized;
            dweight_bound[i] += std::abs(d * normalized) * (off + u * static_cast<double>(c.rows + 3)) + 2 * u * before;
          }
          double const projection_off = magnitude * (off + u * (n + 4));
          for (std::size_t i = 0; i < s.size(); ++i) {
            double const g = static_cast<double>(c.dy[at + i]) * static_cast<double>(c.weight[i]);
            double const normalized = s[i] * reciprocal, beside = joins ? static_cast<double>(c.beside[at + i]) : 0;
            double const exact = before + beside + reciprocal * (g - normalized * projection);
            double const bound = reciprocal * (off + 4 * u) * (std::abs(g) + std::abs(normalized * projection)) +
                                 reciprocal * std::abs(normalized) * (projection_off + 2 * off * std::abs(projection)) +
                                 3 * u * (before + std::abs(beside) + std::abs(exact));
            dx = dx && std::abs(static_cast<double>(r.dx[at + i]) - exact) <= bound;
            if (joins) dx = dx && r.dadded[at + i] == r.dx[at + i];
          }
        }
        for (std::size_t i = 0; i < dweight.size(); ++i)
          dw = dw && std::abs(static_cast<double>(r.dweight[i]) - dweight[i]) <= dweight_bound[i];
        CAPTURE(c.rows);
        CAPTURE(c.width);
        CAPTURE(joins);
        CHECK(y);
        CHECK(dx);
        CHECK(dw);
      }
}

TEST_CASE("the same bits for any number of threads") {
  Case<float> const c{.rows = 1000, .width = 40, .joins = true};
  auto const one = run(c, Write::add, 1);
  for (int threads : {2, 3, 4}) CHECK(run(c, Write::add, threads) == one);
}

TEST_CASE("a row of zeros stays zero and gives finite gradients") {
  Case<float> c{.rows = 1, .width = 5, .joins = false};
  c.x.assign(5, 0.0f);
  auto const r = run(c, Write::overwrite, 1);
  for (float y : r.y) CHECK(y == 0);
  for (float d : r.dx) CHECK(std::isfinite(d));
}

TEST_CASE("shapes that disagree are refused with both numbers") {
  Case<float> c{.rows = 2, .width = 4, .joins = false};
  c.weight.push_back(1);
  ThreadPool pool(1);
  std::vector<float> y(8);
  auto const forward = [&](auto residual, Index weights) {
    Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(c.x, 2, 4), {.value = residual, .dropout = {}},
                           view(c.weight, weights), 1e-6f, view(c.x, 2, 4), {}, view(y, 2, 4));
  };
  CHECK_THROWS_WITH_AS(forward(TensorView<float const, 2, HostSpace>{}, 5),
                       "RMSNorm: rows have 4 elements and weight has 5", ShapeError);
  CHECK_THROWS_WITH_AS(forward(view(std::as_const(c.x), 4, 2), 4),
                       "RMSNorm: x is [2, 4] and what is added to it [4, 2]", ShapeError);
}
