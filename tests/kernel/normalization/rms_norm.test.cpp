// SPDX-License-Identifier: Apache-2.0
#include <lockstep/kernel/normalization/rms_norm.hpp>

#include <doctest/doctest.h>

#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "rms_norm_case.hpp"

using namespace lockstep;
using lockstep_test::RMSNormCase;
using lockstep_test::view;
using Kernel = kernel::RMSNorm<HostSpace>;

TEST_CASE_TEMPLATE("results are within their bound of the definition", T, float, double) {
  // A unit of rounding; for double, the reference rounds as well, and less carefully.
  double const u = static_cast<double>(std::numeric_limits<T>::epsilon()) / 2 * (sizeof(T) == 8 ? 4 : 1);
  for (auto const& shape :
       {std::array<Index, 2>{0, 8}, {1, 1}, {1, 2}, {3, 31}, {127, 32}, {129, 33}, {5, 128}, {2, 1000}})
    for (bool joins : {false, true})
      for (Write write : {Write::overwrite, Write::add}) {
        RMSNormCase<T> const c{.rows = shape[0], .width = shape[1], .joins = joins};
        auto const r = c.on_host(write);
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
          double const reciprocal = 1 / std::sqrt(square + static_cast<double>(c.epsilon));
          // The mean square's n + 2 roundings count half after the root; root and division round once each.
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

TEST_CASE("bits are equal for any number of threads") {
  RMSNormCase<float> const c{.rows = 1000, .width = 40, .joins = true};
  auto const one = c.on_host(Write::add);
  for (int threads : {2, 3, 4}) CHECK(c.on_host(Write::add, threads) == one);
}

TEST_CASE("a row of zeros stays zero and gives finite gradients") {
  RMSNormCase<float> c{.rows = 1, .width = 5, .joins = false};
  c.x.assign(5, 0.0f);
  auto const r = c.on_host(Write::overwrite);
  for (float y : r.y) CHECK(y == 0);
  for (float d : r.dx) CHECK(std::isfinite(d));
}

TEST_CASE("shapes that disagree are refused with both numbers") {
  RMSNormCase<float> c{.rows = 2, .width = 4, .joins = false};
  c.weight.push_back(1);
  ThreadPool pool(1);
  std::vector<float> y(8);
  auto const forward = [&](auto residual, Index weights) {
    Kernel::forward<float>(memory::Stream<HostSpace>(pool), view(c.x, 2, 4), {.value = residual, .dropout = {}},
                           view(c.weight, weights), c.epsilon, view(c.x, 2, 4), {}, view(y, 2, 4));
  };
  CHECK_THROWS_WITH_AS(forward(TensorView<float const, 2, HostSpace>{}, 5),
                       "RMSNorm: rows have 4 elements and weight has 5", ShapeError);
  CHECK_THROWS_WITH_AS(forward(view(std::as_const(c.x), 4, 2), 4), "RMSNorm: x is [2, 4] and the residual [4, 2]",
                       ShapeError);
}
